/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variations of a plan: worlds that lie near it. Faults and jobs are moved a little, or to where another one is, last longer or shorter, are doubled, dropped,
 * or meet another node, daemon or client. What every drawn world keeps, a variation keeps as well: the starts of strangers, the window of the faults, the
 * healing behind it, the minority that flaps in the healed world, the bounds of latencies and leases. Where the plan itself is beyond a bound, as a scene may
 * be, that is the bound. Drawn from a stream of its own.
 */
#include "tests/sim/plan/vary.h"

#include <stdlib.h>

#define CLIENT_LATENCY_MOST_US (5 * MSEC)

/* --- faults ---------------------------------------------------------------------------------------------------------- */

/* The moment of a fault also says what it meets (see fault.def): that part of it stays in most cases. */
static int64_t vary_fault_moment(struct variation *v, int64_t at_us)
{
	int64_t moment = stream_chance(v->s, 85) ? at_us : vary_moment(v), shift = vary_shift(v->s);

	moment += shift;
	return stream_chance(v->s, 70) ? moment - moment % 16 + at_us % 16 : moment;
}

static int64_t other_node(const struct variation *v, const struct fault *f)
{
	const struct plan *p = v->plan;
	unsigned i = (unsigned)stream_range(v->s, 0, p->faults - 1);
	bool stays = stream_chance(v->s, 70);

	/* Mostly a node whose clock is set as well: exclusion is promised as long as those nodes are a minority. */
	if (f->kind == FAULT_NODE_CLOCK && stays)
		return p->fault[i].kind == f->kind ? p->fault[i].a : f->a;
	return stream_range(v->s, 0, p->nodes - 1);
}

/* The fault meets another node, daemon or client. */
static void fault_redirect(const struct variation *v, struct fault *f)
{
	const struct plan *p = v->plan;
	bool first = stream_chance(v->s, 50);

	switch (fault_table[f->kind].of) {
	case OF_NODE:
		if (!fault_is_late(v->of, f))
			f->a = other_node(v, f);
		break;
	case OF_CLIENT:
		f->a = stream_range(v->s, 0, most(p->clients - 1, 0));
		break;
	case OF_DAEMON:
		if (first || f->kind > FAULT_LINK_SLOW || fault_is_late(v->of, f))
			f->a = stream_range(v->s, 0, most(p->daemons - 1, 0));
		else
			f->b = stream_range(v->s, 0, p->nodes - 1);
		break;
	}
}

/* Changes x of the fault: see fault.def. */
static void fault_revalue(const struct variation *v, struct fault *f)
{
	int64_t shift = vary_shift(v->s);

	switch (f->kind) {
	case FAULT_LINK_STALL:
	case FAULT_CLIENT_SLOW:
		f->x = stream_range(v->s, 1, 3);
		break;
	case FAULT_LINK_SLOW:
		f->x = within(2, f->x + stream_range(v->s, -5, 5), most(50, f->x));
		break;
	case FAULT_NODE_OLD:
	case FAULT_NODE_SAME_REPLID:
	case FAULT_NODE_ROLLBACK:
		if (f->x)
			f->x = within(MSEC, f->x + shift, most(2 * v->plan->max_lease_us, f->x));
		break;
	case FAULT_NODE_CLOCK:
		if (f->x && (f->x + shift > 0) == (f->x > 0)) /* not beyond 0: the sign decides what is promised */
			f->x = within(least(-5 * SEC, f->x), f->x + shift, most(5 * SEC, f->x));
		break;
	case FAULT_DAEMON_WALL:
		f->x = within(least(-3600 * SEC, f->x), f->x + shift, most(3600 * SEC, f->x));
		break;
	case FAULT_CLIENT_CUT:
		f->x = stream_range(v->s, 0, 6);
		break;
	case FAULT_DAEMON_TORN:
		f->x = within(1, f->x + stream_range(v->s, -4, 4), most(TORN_MOST, f->x));
		if (f->b)
			f->b = within(1, f->b + shift / MSEC, TORN_MOST);
		break;
	case FAULT_DAEMON_REBOOT:
		f->x = 2 * stream_range(v->s, 0, 3) + f->x % 2;
		break;
	default:
		break;
	}
}

/* Replaces the fault by one of another kind that breaks the same things; both kinds are of class T. */
static void fault_replace(const struct variation *v, struct fault *f)
{
	static const enum fault_kind of[][5] = {
		[OF_DAEMON] = {FAULT_DAEMON_FREEZE, FAULT_DAEMON_FREEZE_SENDING, FAULT_DAEMON_CRASH, FAULT_DAEMON_STOP, FAULT_DAEMON_CRASH},
		[OF_NODE] = {FAULT_NODE_PAUSE, FAULT_NODE_WHOLE, FAULT_NODE_PAUSE, FAULT_NODE_FLUSH, FAULT_NODE_BLANK},
		[OF_CLIENT] = {FAULT_CLIENT_STALL, FAULT_CLIENT_CUT, FAULT_CLIENT_SLOW, FAULT_CLIENT_SILENT, FAULT_CLIENT_CRASH},
	};
	static const enum fault_kind link[] = {FAULT_LINK_RESET, FAULT_LINK_STALL, FAULT_LINK_SLOW, FAULT_LINK_STALL, FAULT_LINK_RESET};
	bool links = f->kind <= FAULT_LINK_SLOW, known = links;
	int64_t which = stream_range(v->s, 0, 4), x = stream_range(v->s, 1, 3);

	for (int i = 0; i < 5; i++)
		known |= f->kind == of[fault_table[f->kind].of][i];
	if (!known || f->x == RESTART_STRANGE || fault_is_late(v->of, f))
		return;
	f->kind = links ? link[which] : of[fault_table[f->kind].of][which];
	f->x = f->kind == FAULT_LINK_SLOW ? 4 * x : links || fault_table[f->kind].of == OF_CLIENT ? x : 0;
}

static void fault_vary(struct variation *v, struct fault *f)
{
	struct fault old = *f;
	int64_t how = stream_range(v->s, 0, 99);

	if (fault_is_start(v->of, f))
		f->for_us = vary_length(v->s, f->for_us);
	else if (how < 55 && !fault_is_of_all(v, f))
		f->at_us = vary_fault_moment(v, f->at_us);
	else if (how < 80)
		f->for_us = vary_length(v->s, f->for_us);
	else if (!fault_is_bound(v, f) && how < 88)
		fault_redirect(v, f);
	else if (!fault_is_bound(v, f) && how < 95)
		fault_revalue(v, f);
	else if (!fault_is_bound(v, f))
		fault_replace(v, f);
	fault_bound(v, f, &old);
}

/* Doubles the fault: once more, at about the same time, perhaps elsewhere. Or drops it. */
static void fault_count(struct variation *v, unsigned i)
{
	struct plan *p = v->plan;
	struct fault twin = p->fault[i];

	if (fault_is_bound(v, &twin))
		return;
	if (stream_chance(v->s, 50)) {
		p->fault[i] = p->fault[--p->faults];
		return;
	}
	if (p->faults == FAULTS_MAX)
		return;
	fault_redirect(v, &twin);
	if (stream_chance(v->s, 30))
		fault_replace(v, &twin);
	twin.at_us = vary_fault_moment(v, twin.at_us);
	fault_bound(v, &twin, &p->fault[i]);
	p->fault[p->faults++] = twin;
}

/* --- jobs ------------------------------------------------------------------------------------------------------------ */

static void job_vary_terms(struct variation *v, struct job *j)
{
	struct stream *s = v->s;
	int64_t shift = vary_shift(s), how = stream_range(s, 0, 99);

	if (how < 30)
		j->ttl_ms += shift / MSEC;
	else if (how < 60 && j->wait_ms > 0)
		j->wait_ms += shift / MSEC;
	else if (how < 70)
		j->cancel_us = j->cancel_us ? most(j->cancel_us + shift, 1) : stream_skewed(s, 1, CANCEL_MOST_US);
	else if (how < 80)
		j->client = stream_range(s, 0, v->plan->clients - 1);
	else if (how < 85)
		j->acts = stream_skewed(s, 0, 6);
	else if (how < 90)
		j->extend = j->extend_ms && j->extend >= 0 ? stream_range(s, 0, j->acts + 1) : j->extend;
	else if (how < 95)
		j->extend_ms += j->extend_ms ? shift / MSEC : 0;
	else if (j->ending != END_LEAVE)
		j->ending = stream_range(s, END_UNLOCK, END_HALF_CLOSE);
}

static void job_vary(struct variation *v, struct job *j)
{
	struct job old = *j;
	int64_t how = stream_range(v->s, 0, 99), shift = vary_shift(v->s);

	if (how < 55)
		j->at_us = (stream_chance(v->s, 85) ? j->at_us : vary_moment(v)) + shift;
	else if (how < 75)
		j->hold_us = vary_length(v->s, j->hold_us);
	else
		job_vary_terms(v, j);
	job_bound(v, j, &old);
}

static void job_count(struct variation *v, unsigned i)
{
	struct plan *p = v->plan;
	struct job twin = p->job[i];

	if (stream_chance(v->s, 50)) {
		p->job[i] = p->job[--p->jobs];
		return;
	}
	if (p->jobs == JOBS_MAX)
		return;
	twin.at_us += vary_shift(v->s);
	twin.client = stream_range(v->s, 0, p->clients - 1);
	job_bound(v, &twin, &p->job[i]);
	p->job[p->jobs++] = twin;
}

/* --- the whole plan -------------------------------------------------------------------------------------------------- */

/* All that comes from some moment on comes later or earlier. */
static void vary_rest(struct variation *v)
{
	struct plan *p = v->plan;
	int64_t from = vary_moment(v), shift = vary_shift(v->s) / 16 * 16;

	for (unsigned i = 0; i < p->faults; i++) {
		struct fault old = p->fault[i];

		if (old.at_us < from || fault_is_start(p, &old))
			continue;
		p->fault[i].at_us += shift;
		fault_bound(v, &p->fault[i], &old);
	}
	for (unsigned i = 0; i < p->jobs; i++) {
		struct job old = p->job[i];

		if (old.at_us < from)
			continue;
		p->job[i].at_us += shift;
		job_bound(v, &p->job[i], &old);
	}
}

/* draw_speed() in draw.c has the bounds. */
static void vary_speed(struct variation *v)
{
	struct plan *p = v->plan;
	int64_t slowest = least(p->lease_us / 40, p->timeout_us / 4) / 2;

	p->latency_us = within(least(60, p->latency_us), vary_length(v->s, p->latency_us), most(slowest, p->latency_us));
	p->jitter_us = within(0, vary_length(v->s, p->jitter_us), most(slowest, p->jitter_us));
	p->client_latency_us =
		within(least(20, p->client_latency_us), vary_length(v->s, p->client_latency_us), most(CLIENT_LATENCY_MOST_US, p->client_latency_us));
}

/* The world heals later, and all that follows comes as much later. */
static void vary_healing(struct variation *v)
{
	struct plan *p = v->plan;
	int64_t later = vary_amount(v->s);

	for (unsigned i = 0; i < p->faults; i++)
		p->fault[i].at_us += p->fault[i].at_us > p->length_us ? later : 0;
	for (unsigned i = 0; i < p->jobs; i++)
		p->job[i].at_us += p->job[i].at_us > p->length_us ? later : 0;
	p->length_us += later;
}

static void vary_each(struct variation *v)
{
	struct plan *p = v->plan;

	for (unsigned i = 0; i < p->faults; i++)
		if (stream_chance(v->s, v->percent))
			fault_vary(v, &p->fault[i]);
	for (unsigned i = 0; i < p->jobs; i++)
		if (stream_chance(v->s, v->percent))
			job_vary(v, &p->job[i]);
	for (int64_t n = stream_skewed(v->s, 0, 4); n > 0 && p->faults > 0; n--)
		fault_count(v, (unsigned)stream_range(v->s, 0, p->faults - 1));
	for (int64_t n = stream_skewed(v->s, 0, 4); n > 0 && p->jobs > 0; n--)
		job_count(v, (unsigned)stream_range(v->s, 0, p->jobs - 1));
}

void plan_vary(struct plan *p, uint64_t number)
{
	static const unsigned percent[] = {10, 30, 60, 100};
	struct plan *before = malloc(sizeof(*before));
	struct stream s;
	struct variation v = {.of = before, .plan = p, .s = &s};

	if (!before)
		abort();
	stream_init(&s, (uint64_t)p->seed, DRAW_VARY, number);
	v.percent = percent[stream_range(&s, 0, 3)];
	if (stream_chance(&s, 10))
		p->seed = stream_range(&s, 1, INT64_MAX); /* other latencies and clocks, and other trials in the finale */
	if (stream_chance(&s, 20))
		vary_healing(&v);
	if (stream_chance(&s, 30))
		vary_speed(&v);
	*before = *p;
	if (p->faults + p->jobs > 0 && stream_chance(&s, 20))
		vary_rest(&v);
	if (p->faults + p->jobs > 0)
		vary_each(&v);
	free(before);
}
