/* SPDX-License-Identifier: BSD-2-Clause */
/* What the scripts of a command did, as the server shows it when they have run (S18, S23, L8). */
#include "tests/sim/world/world.h"

/* S23: the marker of the call is that of the node. Any other one may mean that the node lost its memory meanwhile. */
static void marker_check(struct server *s, const struct flight *f, const struct call *call)
{
	if (!span_equal(sim_node_marker(s->node), call->marker))
		checker_fail(s->world, INVARIANT_S23, name_number(call->name), "node %u votes for daemon %u, which asked under another marker",
			     s->index, f->daemon->index);
}

/* S23: a command that sets a missing key is in time, or nobody would remove the key. */
static void time_check(struct server *s, const struct flight *f, const struct call *call, const struct answer *a)
{
	if (a->code != 'E' && call->not_after_ms > 0 && server_wall(s) / MSEC > call->not_after_ms)
		checker_fail(s->world, INVARIANT_S23, name_number(call->name), "node %u sets a key for daemon %u, %lld ms after the command ran out",
			     s->index, f->daemon->index, (long long)(server_wall(s) / MSEC - call->not_after_ms));
}

/* S23: a join is in time, since the node may have been flushed after it was asked. */
static void join_check(struct server *s, const struct flight *f, const struct call *call)
{
	if (call->not_after_ms > 0 && server_wall(s) / MSEC > call->not_after_ms)
		checker_fail(s->world, INVARIANT_S23, -1, "node %u joins for daemon %u, %lld ms after the command ran out", s->index, f->daemon->index,
			     (long long)(server_wall(s) / MSEC - call->not_after_ms));
	if (call->not_after_ms == 0 && span_starts(call->new_marker, SPAN("j")))
		checker_fail(s->world, INVARIANT_S23, -1, "daemon %u asks node %u to join, and sets no time limit", f->daemon->index, s->index);
}

/* This command itself issued a token as high, which a single token may be: the floor lifts nothing. */
static bool was_issued(const struct flight *f, int64_t token)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->call[i].kind == CALL_ACQUIRE && f->answer[i].code == 'G' && f->answer[i].fence + f->call[i].range >= token)
			return true;
	return false;
}

/*
 * After clocks were set back, a second round may lift the fence beyond its limit, but no further than the highest fence that another node ever had: see
 * daemon/core/member/members.h. That node may have lost its memory since.
 */
static bool another_node_had(const struct server *s, const struct call *call)
{
	const struct world *w = s->world;

	for (unsigned i = 0; i < w->plan->nodes && call->beyond; i++)
		if (&w->server[i] != s && w->server[i].fence_most >= call->fence)
			return true;
	return false;
}

/* S18: a node that renews a lease has a fence that is not below its tokens; and a floor lifts the fence no further than a range may. */
static void floor_check(struct server *s, const struct flight *f, const struct call *call)
{
	int64_t most = server_wall(s) + f->daemon->conf.skew_us + 2 * f->daemon->conf.clock_tol_us;

	if (sim_node_fence(s->node) < call->fence)
		checker_fail(s->world, INVARIANT_S18, name_number(call->name), "node %u renews a lease with tokens up to %lld, but its fence is %lld",
			     s->index, (long long)call->fence, (long long)sim_node_fence(s->node));
	if (call->fence > s->fence && call->fence > most && !was_issued(f, call->fence) && !another_node_had(s, call))
		checker_fail(s->world, INVARIANT_S18, name_number(call->name), "node %u lifts its fence to %lld, beyond its clock + skew + tolerance",
			     s->index, (long long)call->fence);
}

/* A later call of the same command queues the ticket again. */
static bool is_queued_again(const struct flight *f, unsigned withdrawn)
{
	for (unsigned i = withdrawn + 1; i < f->count; i++)
		if (span_equal(f->call[i].name, f->call[withdrawn].name))
			return true;
	return false;
}

/* L8: a withdrawn ticket leaves nothing behind, neither its queue place nor a note. */
static void withdrawal_check(struct server *s, const struct call *call)
{
	char note[1 + sizeof(((struct ticket *)0)->text)];
	struct span noted = {note, 1 + call->ticket.n};
	int64_t until;

	if (call->ticket.n == 0 || noted.n > sizeof(note) || !sim_node_is_well(s->node))
		return;
	note[0] = '~';
	memcpy(note + 1, call->ticket.p, call->ticket.n);
	if (sim_node_place(s->node, call->name, call->ticket, server_wall(s), &until) ||
	    sim_node_place(s->node, call->name, noted, server_wall(s), &until))
		checker_fail(s->world, INVARIANT_L8, name_number(call->name),
			     "node %u: the ticket %.*s was withdrawn, but its place or its note is still there",
			     s->index, (int)call->ticket.n, call->ticket.p);
}

void scripts_ran(struct server *s, const struct flight *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		const struct call *call = &f->call[i];
		const struct answer *a = &f->answer[i];

		if (is_vote(a)) {
			marker_check(s, f, call);
			time_check(s, f, call, a);
		}
		if (call->kind == CALL_MARK && a->code == 'J')
			join_check(s, f, call);
		if (is_vote(a) && call->kind == CALL_EXTEND)
			floor_check(s, f, call);
		if (a->class == ANSWER_EXECUTED && call->kind == CALL_WITHDRAW && !is_queued_again(f, i))
			withdrawal_check(s, call);
	}
}
