/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a failing plan smaller while the same invariant still fails: drops faults, jobs, clients, daemons, the finale, nodes and time. Delta debugging (Zeller,
 * Hildebrandt 2002), lists in halves first. What is left draws the same numbers, since each stream is independent.
 */
#include "tests/sim/sweep/sweep.h"

#include <stdlib.h>

struct shrink {
	struct plan *plan, *next; /* the smallest plan so far; the one that is tried next */
	enum invariant what;
	bool talk;
	unsigned tried;
};

/* If `next` still fails, it becomes the smallest plan. */
static bool shrink_try(struct shrink *s)
{
	struct report r;

	s->tried++;
	report_of_child(s->next, &r);
	if (r.what != s->what)
		return false;
	*s->plan = *s->next;
	return true;
}

static void drop_faults(struct plan *p, unsigned from, unsigned count)
{
	memmove(&p->fault[from], &p->fault[from + count], (p->faults - from - count) * sizeof(*p->fault));
	p->faults -= count;
}

static void drop_jobs(struct plan *p, unsigned from, unsigned count)
{
	memmove(&p->job[from], &p->job[from + count], (p->jobs - from - count) * sizeof(*p->job));
	p->jobs -= count;
}

static bool shrink_list(struct shrink *s, const unsigned *length, void (*drop)(struct plan *p, unsigned from, unsigned count))
{
	bool any = false;

	for (unsigned size = (*length + 1) / 2; size > 0; size = size > 1 ? (size + 1) / 2 : 0) {
		for (unsigned from = 0; from < *length;) {
			*s->next = *s->plan;
			drop(s->next, from, from + size > *length ? *length - from : size);
			if (shrink_try(s))
				any = true;
			else
				from += size;
		}
	}
	return any;
}

static bool shrink_field(struct shrink *s, size_t offset, int64_t least)
{
	int64_t value;
	bool any = false;

	for (;;) {
		memcpy(&value, (const char *)s->plan + offset, sizeof(value));
		if (value <= least)
			return any;
		value = value - least > 1 ? least + (value - least) / 2 : least;
		*s->next = *s->plan;
		memcpy((char *)s->next + offset, &value, sizeof(value));
		for (unsigned i = 0; i < s->next->jobs; i++)
			s->next->job[i].client %= s->next->clients ? s->next->clients : 1;
		for (unsigned i = 0; i < s->next->jobs; i++)
			s->next->job[i].name %= s->next->names;
		if (!shrink_try(s))
			return any;
		any = true;
	}
}

/* Ends the world a second after its last fault and job. */
static bool shrink_length(struct shrink *s)
{
	int64_t last = s->plan->warm_us;

	for (unsigned i = 0; i < s->plan->faults; i++)
		if (s->plan->fault[i].at_us + s->plan->fault[i].for_us > last)
			last = s->plan->fault[i].at_us + s->plan->fault[i].for_us;
	for (unsigned i = 0; i < s->plan->jobs; i++)
		if (s->plan->job[i].at_us > last && s->plan->job[i].at_us <= s->plan->length_us)
			last = s->plan->job[i].at_us;
	if (last + SEC >= s->plan->length_us)
		return false;
	*s->next = *s->plan;
	s->next->length_us = last + SEC;
	return shrink_try(s);
}

/* The nodes that flap in a healed world must stay a minority: L11 promises nothing for more. And of two servers none can be replaced. */
static int64_t nodes_least(const struct plan *p)
{
	unsigned flapping = 0;

	if (plan_changes_servers(p))
		return p->stranger == STRANGER_REPLACED || p->changed ? 4 : 3;
	for (unsigned i = 0; i < p->faults; i++)
		if (fault_is_late(p, &p->fault[i]))
			flapping |= 1u << (fault_table[p->fault[i].kind].of == OF_DAEMON ? p->fault[i].b : p->fault[i].a) % p->nodes;
	return 2 * __builtin_popcount(flapping) + 1;
}

static bool shrink_round(struct shrink *s)
{
	bool any = shrink_list(s, &s->plan->faults, drop_faults);

	any |= shrink_list(s, &s->plan->jobs, drop_jobs);
	any |= shrink_field(s, offsetof(struct plan, clients), s->plan->clients ? 1 : 0);
	any |= shrink_field(s, offsetof(struct plan, daemons), 1);
	any |= shrink_field(s, offsetof(struct plan, names), 1);
	any |= shrink_field(s, offsetof(struct plan, finale), 0);
	any |= shrink_field(s, offsetof(struct plan, fragment_percent), 0);
	any |= shrink_field(s, offsetof(struct plan, drift_ppm), 0);
	any |= shrink_field(s, offsetof(struct plan, node_offset_us), 0);
	any |= shrink_field(s, offsetof(struct plan, daemon_offset_us), 0);
	any |= shrink_field(s, offsetof(struct plan, delay_us), 0);
	any |= shrink_length(s);
	if (s->plan->heartbeat_ms) {
		*s->next = *s->plan;
		s->next->heartbeat_ms = 0;
		any |= shrink_try(s);
	}
	if (s->plan->nodes > nodes_least(s->plan)) {
		*s->next = *s->plan;
		s->next->nodes -= s->plan->nodes - nodes_least(s->plan) > 1 ? 2 : 1;
		any |= shrink_try(s);
	}
	return any;
}

void plan_shrink(struct plan *p, enum invariant what, bool talk)
{
	struct shrink s = {.plan = p, .next = malloc(sizeof(*p)), .what = what, .talk = talk};
	unsigned faults = p->faults, jobs = p->jobs;

	if (!s.next)
		abort();
	for (int round = 0; round < 6 && shrink_round(&s); round++)
		;
	if (talk)
		printf("shrunk in %u runs: %u faults -> %u, %u jobs -> %u, %lld clients, %lld daemons, %lld nodes\n", s.tried,
		       faults, p->faults, jobs, p->jobs, (long long)p->clients, (long long)p->daemons, (long long)p->nodes);
	free(s.next);
}
