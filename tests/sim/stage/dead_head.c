/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dead-head trial, in a healed world (L3): a client of daemon 0 holds k0, one of daemon 1 is first in the queue, one of daemon 2 next. Daemon 1 dies, or is
 * cut off from a quorum, and the holder unlocks: the next client is granted k0 after the grace that the nodes give to daemon 1.
 */
#include "tests/sim/world/world.h"

#define UNLOCK_US (500 * MSEC) /* the holder unlocks within this time after the head is lost */

enum { DEAD_HEAD_BEHIND = STEP_OVER, DEAD_HEAD_LOSE_HEAD, DEAD_HEAD_UNLOCK, DEAD_HEAD_CHECK, DEAD_HEAD_AGAIN, DEAD_HEAD_RESTORED };

/* The holder still holds k0, as its daemon knows: a client whose connection is gone goes on believing. */
static bool holder_holds(const struct world *w)
{
	const struct task *t = w->holder;
	const struct lease *l = &w->checker.lease[0][0];

	return t && t->state == TASK_HOLDING && l->held && l->conn == t->client->conn && l->owner == t->job.owner;
}

static bool dead_head_is_possible(const struct world *w)
{
	return (w->plan->finale & FINALE_HEAD) && w->plan->daemons >= 3 && holder_holds(w);
}

static bool nobody_holds(const struct world *w)
{
	for (unsigned d = 0; d < w->plan->daemons; d++)
		if (w->checker.lease[d][0].held)
			return false;
	return true;
}

/* Only the head and the next wait for k0: no session without a connection can hold it or be granted it. */
static bool only_head_and_next_wait(const struct world *w)
{
	bool next = false;

	if (w->checker.excused[0] > w->now)
		return false;

	for (unsigned d = 0; d < w->plan->daemons; d++) {
		const struct request_sim *q;

		if (w->checker.detached_until[d][0] > w->now)
			return false;
		TAILQ_FOREACH(q, &w->checker.waiters[d][0], in_waiters)
		{
			if (q != w->head->lock && q != w->next->lock)
				return false;
			next |= q == w->next->lock;
		}
	}
	return next;
}

/* The daemon of the next client may notice the release by its own timer, find k0 kept for the head, and ask again after the grace. */
static int64_t dead_head_bound(const struct plan *p)
{
	int64_t grace = 4 * round_trip_us(p);

	return SEC + SEC / 10 + 4 * (grace < 20 * MSEC ? 20 * MSEC : grace) + 20 * round_trip_us(p);
}

/* The daemon of the head reaches fewer than a quorum for so long. */
static void head_is_cut_off(struct world *w, int64_t us)
{
	unsigned quorum = (unsigned)w->plan->nodes / 2 + 1;

	for (unsigned i = 0; !w->head_died && i < quorum; i++)
		w->daemon[1].link[i].stalled_to = w->daemon[1].link[i].stalled_from = w->now + us;
}

static bool flight_acquires(const struct flight *f, struct span name)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->call[i].kind == CALL_ACQUIRE && span_equal(f->call[i].name, name))
			return true;
	return false;
}

/* A key of the head's daemon stands somewhere, or may yet be set. */
static bool head_may_have_key(const struct world *w)
{
	const struct sim_daemon *d = &w->daemon[1];
	struct span name = name_span(0), value;
	const struct flight *f;
	int64_t expires;

	for (unsigned i = 0; i < w->plan->nodes; i++) {
		const struct server *s = &w->server[i];

		if (sim_node_get(s->node, name, server_wall(s), &value, &expires) && daemon_wrote(d, value))
			return true;
		TAILQ_FOREACH(f, &d->link[i].flights, in_link)
		{
			if (flight_acquires(f, name))
				return true;
		}
	}
	return false;
}

/* The death of a daemon excuses that names are blocked, but not k0, of which this daemon has no key. */
static void head_daemon_dies(struct world *w)
{
	int64_t excused = w->checker.excused[0];
	bool may_have_key = head_may_have_key(w);

	daemon_die(&w->daemon[1]);
	if (!may_have_key)
		w->checker.excused[0] = excused;
}

static void head_dies(struct world *w)
{
	w->deaf_until = INT64_MAX;
	w->head_died = w->plan->nodes == 1 || stream_chance(&w->finale, 50);
	if (w->head_died)
		head_daemon_dies(w);
	head_is_cut_off(w, UNLOCK_US + dead_head_bound(w->plan));
}

static void dead_head_lose_head(struct world *w)
{
	/* A head that was granted k0 is no head any more. */
	if (!holder_holds(w) || w->head->state != TASK_ASKING) {
		finale_wait(w, 0, DEAD_HEAD_AGAIN);
		return;
	}
	head_dies(w);
	finale_wait(w, stream_range(&w->finale, 0, UNLOCK_US), DEAD_HEAD_UNLOCK);
}

static void head_returns(struct world *w)
{
	struct sim_daemon *d = &w->daemon[1];

	w->deaf_until = w->now + 4 * SEC;
	if (w->head_died)
		daemon_start(d);
	for (unsigned i = 0; !w->head_died && i < w->plan->nodes; i++) {
		d->link[i].stalled_to = d->link[i].stalled_from = w->now;
		link_break(&d->link[i]);
	}
}

static void dead_head_unlock(struct world *w)
{
	if (!w->next || !holder_holds(w) || w->next->state != TASK_ASKING || !only_head_and_next_wait(w)) {
		w->next_since = 0;
	} else {
		task_end(w->holder, END_UNLOCK);
		w->next_since = w->now;
	}
	finale_wait(w, dead_head_bound(w->plan), DEAD_HEAD_CHECK);
}

/* True time since when k0 is free, if nobody holds it. */
static int64_t freed_at(const struct world *w)
{
	int64_t at = 0;

	for (unsigned d = 0; d < w->plan->daemons; d++)
		if (w->checker.lease[d][0].ended_at > at)
			at = w->checker.lease[d][0].ended_at;
	return at;
}

static void dead_head_check(struct world *w)
{
	int64_t freed = freed_at(w), left = freed + dead_head_bound(w->plan) - w->now;

	/* A daemon read late what stood behind a LOCK that waited: the UNLOCK of the holder, or the LOCK of another client, which had k0 meanwhile. */
	if (w->next_since && freed > w->next_since) {
		w->next_since = freed;
		head_is_cut_off(w, left);
		finale_wait(w, left, DEAD_HEAD_CHECK);
		return;
	}
	if (w->next_since && w->next->state == TASK_ASKING && w->next->client->conn && only_head_and_next_wait(w) && nobody_holds(w))
		checker_fail(w, INVARIANT_L3, 0, "k0: free since %lld us and kept for daemon 1, which does not come, instead of client %u",
			     (long long)w->next_since, w->next->client->index);
	w->tally.heads += w->next_since != 0;
	head_returns(w);
	finale_wait(w, 3 * SEC, DEAD_HEAD_AGAIN);
}

/* Whoever holds k0 releases it, and daemon 0 takes it for the next trial. */
static void dead_head_again(struct world *w)
{
	struct task *all[] = {w->head, w->next, w->holder};

	for (unsigned i = 0; i < 3; i++) {
		if (all[i] && all[i]->state == TASK_HOLDING)
			task_end(all[i], END_UNLOCK);
		else if (all[i] && all[i]->state == TASK_ASKING)
			client_ask(all[i]->client, ASK_CANCEL, NULL, "CANCEL @t%u", all[i]->lock->number);
	}
	finale_wait(w, 2 * SEC, DEAD_HEAD_RESTORED);
}

/* False: the step does not belong to this trial. */
bool dead_head_step(struct world *w)
{
	switch (w->finale_step) {
	case STEP_DEAD_HEAD:
		w->head = dead_head_is_possible(w) ? finale_lock(w, 1) : NULL;
		finale_wait(w, w->head ? 300 * MSEC : 0, w->head ? DEAD_HEAD_BEHIND : STEP_TAKE_OVER);
		return true;
	case DEAD_HEAD_BEHIND:
		w->next = finale_lock(w, 2);
		finale_wait(w, 300 * MSEC, w->next ? DEAD_HEAD_LOSE_HEAD : DEAD_HEAD_AGAIN);
		return true;
	case DEAD_HEAD_LOSE_HEAD:
		dead_head_lose_head(w);
		return true;
	case DEAD_HEAD_UNLOCK:
		dead_head_unlock(w);
		return true;
	case DEAD_HEAD_CHECK:
		dead_head_check(w);
		return true;
	case DEAD_HEAD_AGAIN:
		dead_head_again(w);
		return true;
	case DEAD_HEAD_RESTORED:
		w->holder = finale_lock(w, 0);
		finale_wait(w, 2 * SEC, STEP_TAKE_OVER);
		return true;
	default:
		return false;
	}
}
