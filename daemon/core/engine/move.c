/* SPDX-License-Identifier: BSD-2-Clause */
/* See move.h. */
#include "daemon/core/engine/move.h"

#include <assert.h>
#include <limits.h>

bool admit(struct engine *e, struct admission_entry *x, struct instant urgent_at, struct origin *whose)
{
	if (x->waits)
		return false;
	if (admission_ask(&e->admission, x, members_room(&e->members)))
		return true;
	admission_queue(&e->admission, x, urgent_at, whose);
	metric_add(&e->core->metrics, METRIC_QUEUED, 1);
	admission_wait_watch(e);
	return false;
}

struct admission_entry *admission_wait_next(struct engine *e)
{
	return admission_next(&e->admission, members_room(&e->members), e->core->now);
}

void admission_wait_watch(struct engine *e)
{
	struct timer *t = &e->admission_timer;

	if (admission_is_idle(&e->admission))
		heap_cancel(&e->core->timers, t);
	else if (!timer_is_set(t))
		heap_set(&e->core->timers, t, instant_add(e->core->now, e->core->conf.timeout_us));
}

static void move_log(struct engine *e, const struct name *name, const char *machine, const struct state_row *was, const struct state_row *now, enum cause why)
{
	core_log(e->core, LOG_DEBUG, machine, "name=%s was=%s now=%s why=%s", core_quoted(e->core, name_unescaped(name_text(name))), was->word, now->word,
		 cause_table[why].word);
}

void contender_log(struct engine *e, const struct contender *k, enum contender_state to, enum cause why)
{
	move_log(e, k->name, "contender", &contender_table[k->state], &contender_table[to], why);
}

void contender_leave(struct engine *e, struct contender *k)
{
	if (k->state == CONTENDER_NO_QUORUM)
		TAILQ_REMOVE(&e->no_quorum, k, in_no_quorum);
	if (k->state == CONTENDER_QUEUED)
		admission_leave(&e->admission, &k->entry);
	if (timer_is_set(&k->timer))
		heap_cancel(&e->core->timers, &k->timer);
}

void lease_at_risk(struct engine *e, struct lease *x)
{
	x->at_risk = true;
	TAILQ_INSERT_TAIL(&e->risks, x, renewal->in_list);
}

void lease_safe(struct engine *e, struct lease *x)
{
	if (x->at_risk)
		TAILQ_REMOVE(&e->risks, x, renewal->in_list);
	x->at_risk = false;
}

/* A lease of a semaphore is part of a permit, which counts for itself. */
static void held_count(struct engine *e, const struct lease *x, int change)
{
	e->held += (unsigned)change;
	metric_add(&e->core->metrics, METRIC_LOCKS_HELD, x->limit == 0 ? change : 0);
}

static void lease_leave(struct engine *e, struct lease *x)
{
	if (x->state == LEASE_NONE)
		return;
	if (x->state == LEASE_HELD)
		held_count(e, x, -1);
	if (x->state == LEASE_ADOPTING)
		TAILQ_REMOVE(&e->adopting, x, renewal->in_list);
	lease_safe(e, x);
	admission_leave(&e->admission, &x->renewal->entry);
	if (timer_is_set(&x->timer))
		heap_cancel(&e->core->timers, &x->timer);
}

void lease_move(struct engine *e, struct lease *x, enum lease_state to, enum cause why)
{
	assert(lease_moves[x->state][to][why] && lock_of_lease(x)->contender->state == CONTENDER_IDLE);
	if (e->core->conf.log_moves)
		move_log(e, x->name, "lease", &lease_table[x->state], &lease_table[to], why);
	lease_leave(e, x);
	x->state = to;
	if (to == LEASE_HELD)
		held_count(e, x, 1);
	if (to == LEASE_ADOPTING)
		TAILQ_INSERT_TAIL(&e->adopting, x, renewal->in_list);
}

void lease_schedule(struct engine *e, struct lease *x)
{
	struct instant renew_at = instant_max(x->renew_at, x->renewal->paused_until);

	heap_set(&e->core->timers, &x->timer, instant_min(renew_at, lease_loss_due(x, e->core->conf.nodes)));
}

void lease_end_round(struct lease *x)
{
	if (!x->renewal->round)
		return;
	x->renewal->round->decided = true;
	x->renewal->round = NULL;
}

void lease_refuse_extends(struct engine *e, struct lease *x, enum refusal why)
{
	if (x->renewal->round)
		x->renewal->round->extends = 0;
	if (!TAILQ_EMPTY(&x->renewal->extends))
		notices_extended(&e->notices, x, UINT_MAX, why);
}

void lease_refuse_extends_of(struct engine *e, struct lease *x, const struct claim *holder, enum refusal why)
{
	struct pending *p, *next;
	unsigned i = 0;

	for (p = TAILQ_FIRST(&x->renewal->extends); p; p = next, i++) {
		next = TAILQ_NEXT(p, in_lease);
		if (p->claim != holder)
			continue;
		if (x->renewal->round && i < x->renewal->round->extends) {
			x->renewal->round->extends--; /* the round answers this many from the head of the list */
			i--;
		}
		TAILQ_REMOVE(&x->renewal->extends, p, in_lease);
		notices_add(&e->notices, NOTICE_EXTENDED, NULL, p, why);
	}
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
