/* SPDX-License-Identifier: BSD-2-Clause */
/* See vary.h. Where the plan itself is beyond a bound, as a scene may be, that is the bound. */
#include "tests/sim/plan/vary.h"

#define WAIT_MOST_MS    6000
#define FAULT_MARGIN_US (100 * MSEC) /* between the last fault and the healing */
#define JOB_EARLY_US    (500 * MSEC) /* the first jobs come before the first faults */

int64_t within(int64_t low, int64_t value, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t settled_at(const struct plan *p)
{
	return p->length_us + settle_us(p);
}

/* --- amounts --------------------------------------------------------------------------------------------------------- */

int64_t vary_amount(struct stream *s)
{
	int64_t kind = stream_range(s, 0, 99);

	if (kind < 20)
		return stream_range(s, 1, 200);
	if (kind < 70)
		return stream_range(s, 100, 20 * MSEC);
	return kind < 88 ? stream_range(s, 20 * MSEC, 300 * MSEC) : stream_range(s, 300 * MSEC, 3 * SEC);
}

int64_t vary_shift(struct stream *s)
{
	int64_t amount = vary_amount(s);

	return stream_chance(s, 50) ? amount : -amount;
}

int64_t vary_length(struct stream *s, int64_t us)
{
	int64_t kind = stream_range(s, 0, 99), shift = vary_shift(s), part = stream_range(s, 10, 190);

	return kind < 65 ? us + shift : kind < 95 ? us / 100 * part : 2 * us + shift;
}

int64_t vary_moment(struct variation *v)
{
	const struct plan *p = v->plan;
	int64_t i = stream_range(v->s, 0, (int64_t)(p->faults + p->jobs) - 1);

	if (i < (int64_t)p->faults)
		return p->fault[i].at_us + (stream_chance(v->s, 30) ? p->fault[i].for_us : 0);
	return p->job[i - p->faults].at_us;
}

/* --- what stays ------------------------------------------------------------------------------------------------------ */

bool fault_is_start(const struct plan *p, const struct fault *f)
{
	return f->at_us < p->warm_us;
}

bool fault_is_of_all(const struct variation *v, const struct fault *f)
{
	return f->kind == FAULT_NODE_CLOCK && plan_set_back_us(v->of);
}

/* A scene lets a fault of a client come after the healing. It stays where it is. */
static bool fault_is_beyond(const struct plan *p, const struct fault *f)
{
	return f->at_us > p->length_us && !fault_is_late(p, f);
}

static bool fault_is_first(const struct fault *f)
{
	return (f->kind == FAULT_DAEMON_CRASH || f->kind == FAULT_DAEMON_STOP) && f->x == RESTART_FIRST;
}

/*
 * A daemon that never ran before may trust a first start. A scene has seen to it that some server still shows that there was an earlier one: it must not lose
 * its memory as well.
 */
static bool fault_is_of_first_start(const struct plan *p, const struct fault *f)
{
	bool first = false;

	for (unsigned i = 0; i < p->faults && p->trust; i++)
		first |= fault_is_first(&p->fault[i]);
	return fault_is_first(f) || (first && fault_table[f->kind].of == OF_NODE);
}

bool fault_is_bound(const struct variation *v, const struct fault *f)
{
	return fault_is_start(v->of, f) || fault_is_of_all(v, f) || fault_is_beyond(v->of, f) || fault_is_of_first_start(v->of, f);
}

void fault_bound(const struct variation *v, struct fault *f, const struct fault *old)
{
	const struct plan *p = v->plan;
	int64_t first = p->warm_us, last = p->length_us - FAULT_MARGIN_US, end = p->length_us, longest = 2 * p->max_lease_us;

	if (fault_is_beyond(v->of, old)) {
		*f = *old;
		return;
	}
	if (fault_is_late(v->of, old)) {
		first = settled_at(p) + 1;
		last = first + SETTLED_US - SEC;
		end = first + SETTLED_US - FAULT_MARGIN_US;
		longest = SETTLED_US;
	}
	if (fault_is_start(v->of, old))
		first = last = old->at_us;
	f->at_us = within(least(first, old->at_us), f->at_us, most(last, old->at_us));
	f->for_us = within(least(MSEC, old->for_us), f->for_us, fault_is_start(v->of, old) ? end : most(longest, old->for_us));
	end = most(end, old->at_us + old->for_us);
	f->for_us = least(f->for_us, end - f->at_us);
}

void job_bound(const struct variation *v, struct job *j, const struct job *old)
{
	const struct plan *p = v->plan;
	int64_t first = p->warm_us - JOB_EARLY_US, last = p->length_us, shortest = p->lease_us / 4 / MSEC, longest = p->max_lease_us / MSEC;

	if (old->at_us > v->of->length_us) {
		first = settled_at(p);
		last = first + SETTLED_US;
	}
	j->at_us = within(least(first, old->at_us), j->at_us, most(last, old->at_us));
	j->hold_us = within(0, j->hold_us, most(2 * p->max_lease_us, old->hold_us));
	j->cancel_us = within(0, j->cancel_us, most(CANCEL_MOST_US, old->cancel_us));
	j->wait_ms = within(least(1, old->wait_ms), j->wait_ms, most(WAIT_MOST_MS, old->wait_ms));
	shortest = most(shortest, 100);
	j->ttl_ms = within(least(shortest, old->ttl_ms), j->ttl_ms, most(longest, old->ttl_ms));
	if (old->extend_ms)
		j->extend_ms = within(least(shortest, old->extend_ms), j->extend_ms, most(longest, old->extend_ms));
}
