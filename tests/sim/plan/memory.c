/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds of a daemon that is its own store. There are no links and no servers, so no faults of them. Instead the daemon is killed, often within what a request
 * makes it do, and more than once; in some of these worlds its host is started again. Drawn from a stream of its own.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#define KILLS_MOST     16
#define REBOOT_PERCENT 35
#define SOON_US        (20 * MSEC) /* after a job begins */

bool fault_spares_memory(const struct fault *f)
{
	switch (f->kind) {
	case FAULT_PUBLISH_LOST:
	case FAULT_DAEMON_HALT:
		return true;
	default:
		return fault_table[f->kind].of == OF_NODE || f->kind <= FAULT_LINK_SLOW;
	}
}

/* A step of REALTIME decides nothing but when the host starts again: tokens then go on from that clock. */
static void faults_sift(struct plan *p, bool reboots)
{
	unsigned left = 0;

	for (unsigned i = 0; i < p->faults; i++) {
		struct fault f = p->fault[i];

		if (fault_spares_memory(&f) || (reboots && f.kind == FAULT_DAEMON_WALL))
			continue;
		if ((f.kind == FAULT_DAEMON_CRASH || f.kind == FAULT_DAEMON_STOP) && f.x > RESTART_WITHOUT_JOURNAL)
			f.x = 0;
		p->fault[left++] = f;
	}
	p->faults = left;
}

/* Half of the kills come when a job has just begun. */
static int64_t kill_at(const struct plan *p, struct stream *s)
{
	int64_t any = stream_range(s, p->warm_us, p->length_us - 200 * MSEC), soon = stream_skewed(s, 0, SOON_US), at;

	if (p->jobs == 0 || stream_chance(s, 50))
		return any;
	at = p->job[stream_range(s, 0, p->jobs - 1)].at_us + soon;
	return at < p->warm_us || at > p->length_us - 200 * MSEC ? any : at;
}

/* Whether the files outlast a boot is a property of the host. */
static void draw_kill(struct plan *p, struct stream *s, bool reboots, bool lost)
{
	struct fault *f = &p->fault[p->faults++];
	int64_t left;

	*f = (struct fault){.kind = reboots && stream_chance(s, 50) ? FAULT_DAEMON_REBOOT : FAULT_DAEMON_TORN, .at_us = kill_at(p, s)};
	left = p->length_us - f->at_us;
	f->for_us = stream_chance(s, 70) ? stream_skewed(s, MSEC, p->lease_us / 2) : stream_range(s, MSEC, 2 * p->max_lease_us);
	f->for_us = f->for_us < left ? f->for_us : left;
	f->b = f->kind == FAULT_DAEMON_TORN && stream_chance(s, 40) ? stream_skewed(s, 1, TORN_MOST) : 0;
	f->x = f->kind == FAULT_DAEMON_REBOOT ? 2 * stream_range(s, 0, 3) + !lost : stream_skewed(s, 1, TORN_MOST);
}

void memory_draw(struct plan *p, uint64_t seed)
{
	struct stream s;
	bool reboots, lost;

	if (!p->memory)
		return;
	stream_init(&s, seed, DRAW_MEMORY, 0);
	reboots = stream_chance(&s, REBOOT_PERCENT);
	lost = stream_chance(&s, 50);
	p->nodes = p->daemons = 1; /* a scene may have set more */
	p->stranger = STRANGER_NONE;
	p->strangers = p->changed = p->stranger_lease_us = p->stranger_delay_us = p->stranger_min_us = 0;
	p->finale = p->foreign = p->inquires = p->window = p->echo_percent = 0;
	p->heard_percent = 100;
	/* What this store keeps beside locks is found in more of these worlds than in others. */
	if (stream_chance(&s, 40) && !p->chores)
		p->chores = 1;
	if (!p->rates && stream_chance(&s, 40))
		p->rates = stream_range(&s, RATES_CLOSED, RATES_NEXT);
	faults_sift(p, reboots);
	for (int64_t n = stream_skewed(&s, 0, KILLS_MOST); n > 0 && p->faults < FAULTS_MAX; n--)
		draw_kill(p, &s, reboots, lost);
}
