/* SPDX-License-Identifier: BSD-2-Clause */
/* Every request is answered within its wait and a bound (L7). */
#include "tests/sim/world/world.h"

/*
 * For a LOCK that does not wait: a second for busy stores and rounds, then the calls under way: leading node, other nodes, second round. For an EXTEND: a
 * second for busy stores and for the renewal under way, then its own renewal.
 */
static int64_t second_bound(const struct world *w)
{
	return SEC + 3 * w->plan->timeout_us + 50 * MSEC;
}

/*
 * A DEFER is repeated for a second, and DONE and RETRY as long as the lease lasts. A TAKE may ask for the locks of several chores, one
 * after the other. Some requests ask one store after the other.
 */
static int64_t chore_bound(const struct world *w, const struct request_sim *q)
{
	if (q->chore == CHORE_REVIVE || q->chore == CHORE_JOBS || q->chore == CHORE_LIST)
		return w->plan->nodes * second_bound(w);
	if (q->chore == CHORE_DONE || q->chore == CHORE_RETRY)
		return w->plan->max_lease_us;
	return q->chore == CHORE_TAKE ? ((w->plan->meets ? READ_NAMES : CHORE_LOCKS) + 1) * second_bound(w) : SEC + 200 * MSEC;
}

/* The wait of the request, and what a few rounds take: a request that does not wait may meet three split votes. */
static int64_t request_bound(const struct world *w, const struct request_sim *q)
{
	const struct plan *p = w->plan;
	int64_t rounds = 8 * p->timeout_us + 400 * MSEC + 30 * (2 * (p->latency_us + p->jitter_us) + plan_queue_us(p));

	if (q->wait_ms < 0)
		return INT64_MAX;
	if (q->ask == ASK_CHORE || q->of_job)
		rounds += chore_bound(w, q);
	if (q->group)
		rounds = 2 * (rounds > second_bound(w) ? rounds : second_bound(w)); /* it waits in one queue, and then asks for the other names */
	if (q->ask == ASK_LIST)
		rounds += 2 * STORM_NAMES * MSEC; /* lists are answered in slices, one a millisecond, by turns */
	return rounds + (q->wait_ms * MSEC) + (q->wait_ms * MSEC) / 50;
}

/* Rounds wait for busy stores, or links are slower than the plan says. */
static bool rounds_take_longer(const struct request_sim *q)
{
	const struct sim_daemon *d = q->conn->daemon;
	bool slow = false;

	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		slow |= d->link[i].slow_until > q->begun_at;
	return slow || (d->admission_waited_at > 0 && d->admission_waited_at > q->begun_at - SEC);
}

/* A request behind a RESUME waits for it, and RESUME waits for adoptions. */
static int64_t request_wait_for_resume(const struct request_sim *q)
{
	const struct request_sim *other;

	TAILQ_FOREACH(other, &q->conn->running, at_daemon)
		if (other != q && other->ask == ASK_RESUME)
			return other->wait_ms * MSEC;
	return 0;
}

void reply_time_begin(struct request_sim *q)
{
	struct world *w = q->conn->world;
	const struct sim_daemon *d = q->conn->daemon;
	int64_t *due = &w->checker.due[d->index], bound = request_bound(w, q);
	int64_t from = d->state == DAEMON_STOPPING ? d->thaw_at : w->now; /* this is the last request that the daemon reads before it is stopped */

	if (q->extends || (q->locks && q->wait_ms == 0)) {
		q->busy_us = second_bound(w) > bound ? second_bound(w) - bound : 0;
		bound = second_bound(w) < bound ? second_bound(w) : bound;
	}
	q->due_at = bound == INT64_MAX ? INT64_MAX : from + bound + request_wait_for_resume(q);
	if (q->due_at < *due)
		*due = q->due_at;
}

static void conns_each_running(struct sim_daemon *d, void (*visit)(struct world *w, struct request_sim *q))
{
	for (unsigned i = 0; i < d->slots; i++) {
		struct request_sim *q;

		if (!d->slot[i])
			continue;
		TAILQ_FOREACH(q, &d->slot[i]->running, at_daemon)
		visit(d->world, q);
	}
}

static void request_set_due_anew(struct world *w, struct request_sim *q)
{
	if (q->due_at != INT64_MAX)
		q->due_at += q->conn->daemon->thaw_at - w->now;
}

void reply_time_stopped(struct sim_daemon *d)
{
	conns_each_running(d, request_set_due_anew);
}

/* It waits for the stores first, and is then asked for again. */
static void request_begins_anew(struct world *w, struct request_sim *q)
{
	if (q->due_at != INT64_MAX)
		q->due_at += second_bound(w) + 2 * w->plan->timeout_us;
}

void reply_time_restarted(struct sim_daemon *d)
{
	conns_each_running(d, request_begins_anew);
}

static void request_check(struct world *w, struct request_sim *q)
{
	int64_t *due = &w->checker.due[q->conn->daemon->index];

	if (q->due_at <= w->now && q->busy_us && rounds_take_longer(q)) {
		q->due_at += q->busy_us;
		q->busy_us = 0;
	}
	if (q->due_at <= w->now && running_awaits(q))
		q->due_at = INT64_MAX; /* the client has to read first, and may be gone */
	if (q->due_at <= w->now && !q->conn->taken)
		checker_fail(w, INVARIANT_L7, q->name,
			     "client %u: request %u, begun at %lld us with a wait of %lld ms, is not answered in time", q->conn->client->index,
			     q->number, (long long)q->begun_at, (long long)q->wait_ms);
	if (q->due_at < *due)
		*due = q->due_at;
}

void reply_time_check(struct sim_daemon *d)
{
	struct world *w = d->world;

	if (w->now < w->checker.due[d->index])
		return;
	w->checker.due[d->index] = INT64_MAX;
	conns_each_running(d, request_check);
}
