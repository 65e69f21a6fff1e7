/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds where all goes wrong at once: random faults and jobs are moved to a few moments, mostly to those of a scene or of another fault. They show what takes
 * two or three causes within milliseconds.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#define BUNCHED_PERCENT 12
#define FOCI_MOST     3

struct foci {
	int64_t at_us[FOCI_MOST];
	int64_t n;
};

static int64_t fault_time(const struct plan *p, struct stream *s, unsigned from)
{
	return p->fault[stream_range(s, from, p->faults - 1)].at_us;
}

static void foci_draw(struct foci *foci, const struct plan *p, struct stream *s, unsigned drawn)
{
	foci->n = stream_range(s, 1, FOCI_MOST);
	for (int64_t i = 0; i < foci->n; i++) {
		foci->at_us[i] = stream_range(s, p->warm_us, p->length_us - 100 * MSEC);
		if (p->faults > drawn && stream_chance(s, 70))
			foci->at_us[i] = fault_time(p, s, drawn);
		else if (p->faults > 0 && stream_chance(s, 50))
			foci->at_us[i] = fault_time(p, s, 0);
	}
}

static int64_t foci_pick(const struct foci *foci, struct stream *s)
{
	return foci->at_us[stream_range(s, 0, foci->n - 1)];
}

static void fault_move(const struct plan *p, struct fault *f, int64_t at_us)
{
	if (at_us < p->warm_us || at_us > p->length_us - 100 * MSEC)
		return;
	f->at_us = at_us;
	if (f->for_us > p->length_us - at_us)
		f->for_us = p->length_us - at_us;
}

void bunched_draw(struct plan *p, uint64_t seed, unsigned drawn)
{
	struct stream s;
	struct foci foci;

	stream_init(&s, seed, DRAW_BUNCHED, 0);
	if (rare_of(seed) != RARE_NONE || !stream_chance(&s, BUNCHED_PERCENT))
		return;
	foci_draw(&foci, p, &s, drawn);
	for (unsigned i = 0; i < drawn && i < p->faults; i++) {
		int64_t off = stream_skewed(&s, 0, stream_chance(&s, 50) ? 5 * MSEC : 300 * MSEC), focus;

		if (p->fault[i].at_us < p->warm_us || stream_chance(&s, 20)) /* the late start of a stranger stays */
			continue;
		focus = foci_pick(&foci, &s);
		fault_move(p, &p->fault[i], stream_chance(&s, 50) ? focus + off : focus - off);
	}
	for (unsigned i = 0; i < p->jobs; i++) {
		int64_t at = foci_pick(&foci, &s);

		at -= stream_skewed(&s, 0, stream_chance(&s, 50) ? 50 * MSEC : 2 * p->lease_us);
		if (p->job[i].at_us <= p->length_us && at >= p->warm_us - 500 * MSEC && stream_chance(&s, 50))
			p->job[i].at_us = at;
	}
}
