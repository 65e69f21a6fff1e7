/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/round/ask.h"

#include "daemon/core/lock/contender.h"
#include "daemon/core/member/member.h"
#include "daemon/core/member/observe.h"

#include <string.h>

/*
 * The key may stand there from now on, at most until its TTL is over. How late the store may set it depends on how roughly its clock is known now. That is
 * noted now, since a later answer may tell the clock better.
 */
static void ask_note_placed(struct call_table *t, struct round *r, unsigned node)
{
	int64_t px_us = round_px_us(r);
	struct instant until = instant_add(t->core->now, t->core->conf.timeout_us + px_us + px_us / 50 + SEC);
	struct member *m = &t->members->node[node];

	member_note_width(t->members, m, m->clock.high - m->clock.low);
	placed_add(round_placed(r), node, px_us, until);
}

/* Sends a call that may place the value, on the terms of the round. */
static struct call *ask_to_place(struct call_table *t, struct round *r, unsigned node, struct span value, enum call_kind kind)
{
	struct call *call = calls_send(t, &r->calls, node, kind);

	call->value = value;
	if (kind == CALL_EXTEND)
		call->new_value = value;
	call->px_ms = whole_ms(round_px_us(r));
	call->form = r->form;
	ask_note_placed(t, r, node);
	return call;
}

/*
 * A call sets a key within the timeout or not at all: nobody would release a key that is set later. Nor does it set one when the lease may be over without it:
 * the next run of the daemon would take it for a key that stood there all the time.
 */
static int64_t ask_in_time_ms(const struct call_table *t, unsigned node)
{
	return member_server_ms(&t->members->node[node], instant_add(t->core->now, t->core->conf.timeout_us));
}

static int64_t ask_not_after_ms(const struct call_table *t, unsigned node, struct instant lease_end)
{
	int64_t in_time = ask_in_time_ms(t, node), least = member_server_ms_least(&t->members->node[node], lease_end);

	return least < in_time ? least : in_time;
}

static int64_t ask_acquire_by_ms(const struct call_table *t, const struct round *r, unsigned node)
{
	const struct member_clock *clock = &t->members->node[node].clock;

	if (2 * (t->core->conf.timeout_us + clock->high - clock->low) < r->ttl_us)
		return ask_in_time_ms(t, node); /* whatever its clock is, the lease is not over by then */
	return ask_not_after_ms(t, node, vote_until(t->core->now, r->ttl_us));
}

void ask_acquire(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t proposal, struct span ticket, int64_t reserve_us)
{
	struct call *call = ask_to_place(t, r, node, value, CALL_ACQUIRE);

	call->fence = proposal;
	call->range = r->range;
	call->ticket = ticket;
	call->ticket_ms = TICKET_US / MSEC;
	call->reserve_ms = whole_ms(reserve_us);
	call->not_after_ms = ask_acquire_by_ms(t, r, node);
}

struct call *ask_extend(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t floor, struct instant put_back)
{
	struct call *call = ask_to_place(t, r, node, value, CALL_EXTEND);

	call->fence = floor;
	call->create = instant_before(t->core->now, put_back);
	call->beyond = members_were_set_back(t->members, floor);
	if (call->create)
		call->not_after_ms = ask_not_after_ms(t, node, put_back);
	return call;
}

void ask_raise(struct call_table *t, struct round *r, unsigned node, struct span value, bool beyond)
{
	struct call *call = ask_to_place(t, r, node, value, CALL_EXTEND);

	call->fence = r->token + r->range;
	call->beyond = beyond;
}

void ask_break(struct call_table *t, struct round *r, unsigned node, struct span what)
{
	calls_send(t, &r->calls, node, CALL_BREAK)->value = what;
}

void ask_look(struct call_table *t, struct round *r, unsigned node)
{
	(void)calls_send(t, &r->calls, node, CALL_LOOK);
}
