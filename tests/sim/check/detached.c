/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of sessions that lost their connection: how long they may stay queued at the daemon, and be granted what nobody hears of. */
#include "tests/sim/world/world.h"

/* A request loses its place unless the client repeats it within the grace, or the length of a lease if that is longer. */
static int64_t orphans_end(const struct world *w)
{
	const struct plan *p = w->plan;
	int64_t grace = p->grace_ms * MSEC;

	return w->now + (grace > p->lease_us ? grace : p->lease_us) * 51 / 50 + SEC;
}

/* A grant to such a request blocks the name until it expires, though nobody may believe in it. */
static void orphans_excuse(struct world *w, int64_t name)
{
	checker_excuse(w, name, orphans_end(w) + (w->plan->max_lease_us + w->plan->delay_us) * 51 / 50);
}

static void orphans_wait(struct conn *c, int64_t name)
{
	c->orphans[name] = true;
	c->world->checker.orphans_until[c->daemon->index][name] = orphans_end(c->world);
	orphans_excuse(c->world, name);
}

/* The time to repeat a request starts again when the connection ends within it, and when the session is resumed. */
static void orphans_wait_on(struct conn *to, const struct conn *from)
{
	const struct world *w = to->world;

	for (int64_t name = 0; name < NAMES_MAX; name++)
		if (from->orphans[name] && w->checker.orphans_until[to->daemon->index][name] > w->now)
			orphans_wait(to, name);
}

/* A connection ends and its session stays: its holds and its queued requests stay until the grace is over and nobody may believe any more. */
void orphans_detached(struct conn *c)
{
	struct request_sim *q;

	c->detached_at = c->world->now;
	orphans_wait_on(c, c);
	TAILQ_FOREACH(q, &c->running, at_daemon)
	{
		if (q->ask != ASK_LOCK)
			continue;
		orphans_wait(c, q->name);
		c->world->checker.lease[c->daemon->index][q->name].unseen = true;
	}
	for (int64_t name = 0; name < NAMES_MAX; name++)
		for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
			if (c->account[owner][name].count > 0)
				orphans_excuse(c->world, name);
}

/* RESUME keeps the places that still exist. They end with the run of the daemon. */
void orphans_move(struct conn *to, const struct conn *from)
{
	if (from->daemon == to->daemon && from->life == to->life)
		orphans_wait_on(to, from);
}
