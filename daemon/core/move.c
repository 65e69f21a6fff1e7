/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/move.h"

#include <assert.h>
#include <limits.h>

static void move_tell(struct engine *e, const struct lock *l, const char *machine, const struct state_row *was, const struct state_row *now, enum cause why)
{
	core_log(e->core, LOG_DEBUG, machine, "name=%s was=%s now=%s why=%s", core_quoted(e->core, lock_name(l)), was->word, now->word, cause_table[why].word);
}

void contender_tell(struct engine *e, const struct lock *l, enum contender_state to, enum cause why)
{
	move_tell(e, l, "contender", &contender_table[l->contender.state], &contender_table[to], why);
}

void contender_leave(struct engine *e, struct lock *l)
{
	if (l->contender.state == CONTENDER_NO_QUORUM)
		TAILQ_REMOVE(&e->no_quorum, l, in_no_quorum);
	if (l->contender.state == CONTENDER_QUEUED)
		admission_leave(&e->admission, &l->contender.entry);
	if (timer_is_set(&l->timer))
		heap_cancel(&e->core->timers, &l->timer);
}

void lease_at_risk(struct engine *e, struct lock *l)
{
	l->lease.at_risk = true;
	TAILQ_INSERT_TAIL(&e->risks, l, in_risk);
}

void lease_safe(struct engine *e, struct lock *l)
{
	if (l->lease.at_risk)
		TAILQ_REMOVE(&e->risks, l, in_risk);
	l->lease.at_risk = false;
}

static void lease_leave(struct engine *e, struct lock *l)
{
	if (l->lease.state == LEASE_NONE)
		return;
	if (l->lease.state == LEASE_HELD)
		metric_add(&e->core->metrics, METRIC_LOCKS_HELD, -1);
	if (l->lease.state == LEASE_ADOPTING)
		TAILQ_REMOVE(&e->adopting, l, in_risk);
	lease_safe(e, l);
	admission_leave(&e->admission, &l->lease.entry);
	if (timer_is_set(&l->timer))
		heap_cancel(&e->core->timers, &l->timer);
}

void lease_move(struct engine *e, struct lock *l, enum lease_state to, enum cause why)
{
	assert(lease_moves[l->lease.state][to][why] && l->contender.state == CONTENDER_IDLE);
	if (e->core->conf.tell_moves)
		move_tell(e, l, "lease", &lease_table[l->lease.state], &lease_table[to], why);
	lease_leave(e, l);
	l->lease.state = to;
	if (to == LEASE_HELD)
		metric_add(&e->core->metrics, METRIC_LOCKS_HELD, 1);
	if (to == LEASE_ADOPTING)
		TAILQ_INSERT_TAIL(&e->adopting, l, in_risk);
}

void lease_schedule(struct engine *e, struct lock *l)
{
	heap_set(&e->core->timers, &l->timer, instant_min(l->lease.renew_at, lock_tell_at(&e->table, l)));
}

void lease_end_round(struct lock *l)
{
	if (l->round)
		l->round->decided = true;
	l->round = NULL;
}

void lease_refuse_extends(struct engine *e, struct lock *l, enum refusal why)
{
	if (l->round)
		l->round->extends = 0;
	notices_extended(&e->notices, l, UINT_MAX, why);
}

void retire_round(struct engine *e, struct round *r)
{
	struct lock *l = lock_of_name(r->calls.name);

	if (!r->decided || nodeset_any(r->calls.open))
		return;
	round_free(&e->rounds, r);
	lock_drop_if_unused(&e->table, l);
}

void retire_release(struct engine *e, struct release *r)
{
	struct lock *l = lock_of_name(r->calls.name);

	if (!release_is_over(r))
		return;
	release_free(&e->releases, r);
	lock_drop_if_unused(&e->table, l);
}
