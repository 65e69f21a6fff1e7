/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests that a daemon has begun and not answered: when each begins, and which of them a line answers. */
#include "tests/sim/world/world.h"

void running_begin(struct request_sim *q)
{
	struct world *w = q->conn->world;

	TAILQ_INSERT_TAIL(&q->conn->running, q, at_daemon);
	q->running = true;
	q->begun_at = w->now;
	q->begun_step = w->checker.step;
	if (q->ask == ASK_LOCK && !q->ttl_ms)
		q->ttl_ms = q->conn->daemon->conf.lease_us / MSEC;
	reply_time_begin(q);
	nests_begun(q);
	chores_begun(q);
	if (q->ask == ASK_EXTEND)
		account_asked(q);
	if (q->ask == ASK_LOCK)
		TAILQ_INSERT_TAIL(&w->checker.waiters[q->conn->daemon->index][q->name], q, in_waiters);
	readers_begin(q);
	if (q->ask >= ASK_COMPLETE)
		named_begin(q);
	q->late = q->sync;
	if (q->ask == ASK_UNLOCK && q->sync)
		TAILQ_INSERT_TAIL(&w->checker.syncs, q, in_syncs);
}

/* While the daemon waits for the client to read, it begins no untagged request. */
bool running_awaits(const struct request_sim *q)
{
	return !q->tagged && q->conn->awaited_step > 0 && q->begun_step >= q->conn->awaited_step;
}

static void request_out(struct request_sim *q)
{
	struct world *w = q->conn->world;

	TAILQ_REMOVE(&q->conn->running, q, at_daemon);
	q->running = false;
	if (q->ask == ASK_UNLOCK && q->sync) {
		TAILQ_REMOVE(&w->checker.syncs, q, in_syncs);
		q->sync = false;
	}
	if (q->ask == ASK_LOCK)
		TAILQ_REMOVE(&w->checker.waiters[q->conn->daemon->index][q->name], q, in_waiters);
}

/* Behind an untagged request that is answered, the next one of its session begins. */
void running_done(struct request_sim *q)
{
	struct request_sim *next = TAILQ_FIRST(&q->conn->queued);

	request_out(q);
	if (q->tagged || !next)
		return;
	TAILQ_REMOVE(&q->conn->queued, next, at_daemon);
	running_begin(next);
}

void running_has_read(struct conn *c)
{
	struct request_sim *q;

	TAILQ_FOREACH(q, &c->running, at_daemon)
		if (running_awaits(q)) {
			q->begun_step = c->world->checker.step;
			reply_time_begin(q);
		}
	c->awaited_step = 0;
}

struct request_sim *running_of_line(struct conn *c, struct span line)
{
	struct request_sim *q;
	unsigned number = 0;
	bool tagged = line_tag(line, &number);

	TAILQ_FOREACH(q, &c->running, at_daemon)
	{
		if (q->tagged == tagged && (!tagged || q->number == number))
			return q;
	}
	return NULL;
}

void running_over(struct conn *c)
{
	struct request_sim *q;

	while ((q = TAILQ_FIRST(&c->running)))
		request_out(q);
	while ((q = TAILQ_FIRST(&c->queued)))
		TAILQ_REMOVE(&c->queued, q, at_daemon);
}
