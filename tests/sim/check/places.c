/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue places that daemons have at each node: a node grants a name to the oldest ticket, or keeps it free for that one for a grace (S20). */
#include "tests/sim/world/world.h"

static int64_t wall_ms(const struct server *s)
{
	return server_wall(s) / MSEC;
}

void places_lost(struct server *s)
{
	memset(s->world->checker.place[s->index], 0, sizeof(s->world->checker.place[s->index]));
}

/* Tickets compare as strings; "" comes after all others. */
static bool comes_before(const struct place *p, struct span ticket)
{
	size_t n = p->ticket.n < ticket.n ? p->ticket.n : ticket.n;
	int order = memcmp(p->ticket.text, ticket.n ? ticket.p : "", n);

	return ticket.n == 0 || order < 0 || (order == 0 && p->ticket.n < ticket.n);
}

/*
 * S20: a node passes over an older place only when the key was free for the whole reserved time and that daemon did not ask for it. A daemon whose key already
 * stands there takes it from nobody: a renewal of a newer connection put it back before this call of an older one arrived.
 */
static void passing_check(struct server *s, const struct flight *f, const struct call *call, int64_t name)
{
	struct world *w = s->world;

	for (unsigned d = 0; d < w->plan->daemons && s->taken[name]; d++) {
		const struct place *p = &w->checker.place[s->index][d][name];

		if (d == f->daemon->index || p->until_ms <= wall_ms(s) + 1 || !comes_before(p, call->ticket) ||
		    (s->unused_ms[name] + 1 >= call->reserve_ms && wall_ms(s) - p->asked_ms + 1 >= call->reserve_ms))
			continue;
		checker_fail(w, INVARIANT_S20, name, "%s: node %u, free for %lld ms, grants daemon %u before the older ticket %.*s, which asked %lld ms ago",
			     name_of(name), s->index, (long long)s->unused_ms[name], f->daemon->index, (int)p->ticket.n,
			     p->ticket.text, (long long)(wall_ms(s) - p->asked_ms));
	}
}

static void key_note(struct server *s, int64_t name)
{
	struct span value;
	int64_t expires;

	if (!sim_node_get(s->node, name_span(name), server_wall(s), &value, &expires)) {
		if (s->free_from_ms[name] > wall_ms(s))
			s->free_from_ms[name] = wall_ms(s);
	} else if (value.n > 0 && memchr(value.p, ':', value.n)) {
		s->free_from_ms[name] = expires ? expires : INT64_MAX;
	}
}

/* A lock key was set or removed. */
void places_key(struct server *s, int64_t name, bool was, bool is)
{
	s->taken[name] |= !was && is;
	if (was && !is && s->free_from_ms[name] > wall_ms(s))
		s->free_from_ms[name] = wall_ms(s);
	if (!was && is)
		s->unused_ms[name] = wall_ms(s) - s->free_from_ms[name];
}

void places_ran(struct server *s, const struct flight *f, unsigned i)
{
	const struct call *call = &f->call[i];
	const struct answer *a = &f->answer[i];
	int64_t name = name_number(call->name), until;
	struct place *p;

	if (name < 0)
		return;
	p = &s->world->checker.place[s->index][f->daemon->index][name];
	if (call->kind == CALL_ACQUIRE && a->class == ANSWER_EXECUTED && a->code == 'G')
		passing_check(s, f, call, name);
	if (call->kind == CALL_ACQUIRE && (a->code == 'B' || a->code == 'K' || a->code == 'W') && call->ticket.n > 0 &&
	    sim_node_is_well(s->node) && /* else it answers the same, but stores nothing */
	    sim_node_place(s->node, call->name, call->ticket, server_wall(s), &until) && until > wall_ms(s)) {
		ticket_set(&p->ticket, call->ticket);
		p->asked_ms = wall_ms(s);
		p->until_ms = p->asked_ms + TICKET_MS;
	} else if ((a->code == 'G' || call->kind == CALL_WITHDRAW) && ticket_is(&p->ticket, call->ticket)) {
		p->until_ms = 0;
	}
	key_note(s, name);
}
