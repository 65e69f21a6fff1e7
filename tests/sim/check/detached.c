/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of sessions that lost their connection: how long they may stay queued at the daemon, and be granted what nobody hears of. */
#include "tests/sim/world/world.h"

/* A request loses its place unless the client repeats it within the grace, or the length of a lease if that is longer. */
static int64_t detached_end(const struct world *w)
{
	const struct plan *p = w->plan;
	int64_t grace = p->grace_ms * MSEC;

	return w->now + (grace > plan_default_lease_us(p) ? grace : plan_default_lease_us(p)) * 51 / 50 + SEC;
}

/* A grant to such a request blocks the name until it expires, though nobody may rely on it. */
static void detached_excuse(struct world *w, int64_t name)
{
	checker_excuse(w, name, detached_end(w) + (w->plan->max_lease_us + w->plan->delay_us) * 51 / 50);
}

static void detached_wait(struct conn *c, int64_t name)
{
	c->detached[name] = true;
	c->world->checker.detached_until[c->daemon->index][name] = detached_end(c->world);
	detached_excuse(c->world, name);
}

/* The time to repeat a request starts again when the connection ends within it, and when the session is resumed. */
static void detached_wait_on(struct conn *to, const struct conn *from)
{
	const struct world *w = to->world;

	for (int64_t name = 0; name < NAMES_MAX; name++)
		if (from->detached[name] && w->checker.detached_until[to->daemon->index][name] > w->now)
			detached_wait(to, name);
}

/* The connection that has the session, until another one resumes it. */
static bool has_session(const struct conn *c)
{
	const struct conn *other;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (other->daemon == c->daemon && other->took > c->took && !strcmp(other->secret, c->secret))
			return false;
	}
	return c->secret[0];
}

/* At most so many sessions of the daemon have no connection: of the peer of c, or of all peers. */
static uint64_t detached_count(const struct conn *of, bool all)
{
	const struct sim_daemon *d = of->daemon;
	const struct world *w = d->world;
	int64_t longest = later(w->plan->grace_ms * MSEC, plan_default_lease_us(w->plan)) * 51 / 50 + SEC;
	const struct conn *c;
	uint64_t n = 0;

	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		int64_t since = c->run == d->run ? later(c->detached_run_us, d->restored_run_us) : d->restored_run_us;

		if (c->detached_at > 0 && (all || c->peer.is_unix == of->peer.is_unix) && c->daemon == d &&
		    host_run_us(&d->host, w->now) - since < longest && has_session(c))
			n++;
	}
	return n;
}

static bool may_hold_nothing(const struct conn *c)
{
	for (int64_t name = 0; name < NAMES_MAX; name++)
		for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
			if (c->account[owner][name].count > 0 && !c->unlocking)
				return false;
	return true;
}

/*
 * Where so many sessions are detached, or half as many of one peer, one that holds something takes the place of one that holds nothing, whoever is the first
 * of those.
 */
static void detached_crowd(struct conn *c)
{
	struct conn *other;

	c->crowded_out = true;
	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (other->detached_at > 0 && may_hold_nothing(other))
			other->crowded_out = true;
	}
}

/* A connection ends and its session stays: its holds and its queued requests stay until the grace is over and nobody may believe any more. */
void detached_begin(struct conn *c)
{
	uint64_t most = c->daemon->conf.limits.detached;
	struct request_sim *q;

	if (daemon_is_up(c->daemon) && most > 0 && (detached_count(c, true) >= most || detached_count(c, false) >= (most + 1) / 2))
		detached_crowd(c);
	c->detached_at = c->world->now;
	c->detached_run_us = host_run_us(&c->daemon->host, c->world->now);
	detached_wait_on(c, c);
	TAILQ_FOREACH(q, &c->running, at_daemon)
	{
		c->unlocking |= q->ask == ASK_UNLOCK;
		if (q->ask != ASK_LOCK)
			continue;
		detached_wait(c, q->name);
		c->world->checker.lease[c->daemon->index][q->name].unseen = true;
	}
	for (int64_t name = 0; name < NAMES_MAX; name++)
		for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
			if (c->account[owner][name].count > 0)
				detached_excuse(c->world, name);
}

/* RESUME keeps the places that still exist. They end with the run of the daemon. */
void detached_move(struct conn *to, const struct conn *from)
{
	if (from->daemon == to->daemon && from->run == to->run)
		detached_wait_on(to, from);
}
