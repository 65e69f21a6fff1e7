/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks among the names n0 …: DEADLOCK is answered only if there was one (S29), and in a healed world none lasts (L15). Each owner waits for one name at
 * a time, so an owner is stuck if some holder of that name is, or somebody before it in the queue. Of a semaphore so many of those that have permits must be
 * stuck that the others cannot free enough.
 *
 * There are two views. What may be: a session without a connection may wait and hold for as long as its grace lasts. What certainly is: a connection that
 * stands, what it was told, and what it has not given up.
 */
#include "tests/sim/world/world.h"

#define FOUND_US  (10 * SEC)
#define OPENED_US (2 * SEC) /* since then others may have opened the circle of one that is refused */
#define LOOK_US   (50 * MSEC)

/* How long a session may go on without its connection. */
static int64_t lingers_us(const struct world *w)
{
	const struct plan *p = w->plan;

	return (p->grace_ms * MSEC + 2 * p->max_lease_us) * 51 / 50 + 3 * SEC;
}

static bool nest_may_be(const struct conn *c)
{
	return !c->nest.over_at || c->world->now - c->nest.over_at < lingers_us(c->world);
}

static bool nest_is_sure(const struct conn *c)
{
	return !c->nest.over_at && c->daemon_open && !c->going && !c->taken && !c->half_closed && !c->eof && c->daemon->state == DAEMON_RUNNING &&
	       c->run == c->daemon->run;
}

/* This connection may have a permit of the semaphore, which its client does not give back. */
static bool nest_may_have(const struct conn *c, int64_t name)
{
	return nest_may_be(c) && c->client->nest.stuck && (c->nest.holds[name] || c->nest.gives[name]);
}

/* Is this connection in the way of what the other one waits for, if its client goes on only with that? */
static bool nest_blocks(const struct conn *waiter, const struct conn *holder)
{
	int64_t name = waiter->nest.waits - 1;

	if (holder->client == waiter->client || !holder->client->nest.stuck || !nest_may_be(holder))
		return false;
	if (holder->nest.waits == waiter->nest.waits && holder->nest.begun < waiter->nest.begun)
		return true;
	return nest_limit(waiter->world, name) == 0 && (holder->nest.holds[name] || holder->nest.gives[name]);
}

/* Does this session wait for what is not given to it, as far as the stuck clients are concerned? */
static bool nest_wait_is_blocked(const struct conn *c)
{
	int64_t limit = nest_limit(c->world, c->nest.waits - 1), taken = 0;
	const struct conn *other;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (nest_blocks(c, other))
			return true;
		taken += other != c && nest_may_have(other, c->nest.waits - 1);
	}
	return limit > 0 && taken >= limit;
}

/* The client may have resumed a session that still waits. */
static bool nest_is_blocked(const struct sim_client *client)
{
	const struct conn *c;

	TAILQ_FOREACH(c, &client->world->conns, in_world)
		if (c->client == client && c->nest.waits > 0 && nest_may_be(c) && nest_wait_is_blocked(c))
			return true;
	return false;
}

/* Before and after a change: marks the clients that can never go on. */
static void nests_note(struct world *w)
{
	bool more = true;

	for (unsigned i = 0; i < w->plan->clients; i++)
		w->client[i].nest.stuck = true;
	while (more) {
		more = false;
		for (unsigned i = 0; i < w->plan->clients; i++) {
			if (!w->client[i].nest.stuck || nest_is_blocked(&w->client[i]))
				continue;
			w->client[i].nest.stuck = false;
			more = true;
		}
	}
	for (unsigned i = 0; i < w->plan->clients; i++)
		if (w->client[i].nest.stuck)
			w->client[i].nest.stuck_at = w->now;
}

void nests_begun(struct request_sim *q)
{
	struct conn *c = q->conn;

	if (q->ask != ASK_NEST)
		return;
	nests_note(c->world);
	if (q->beside) {
		c->nest.gives[q->name] = true; /* it may have it before it says so */
		nests_note(c->world);
		return;
	}
	if (!q->locks) {
		c->nest.gives[q->name] |= c->nest.holds[q->name];
		c->nest.holds[q->name] = false;
		return;
	}
	c->nest.waits = q->name + 1;
	c->nest.begun = c->world->checker.step;
	c->nest.since = c->world->now;
	nests_note(c->world);
}

static void nest_has(struct conn *c, int64_t name, bool ok)
{
	if (!ok)
		return;
	c->nest.holds[name] = true;
	c->nest.held_since[name] = c->world->now;
	nests_note(c->world);
}

void nests_said(struct request_sim *q, struct span line)
{
	struct conn *c = q->conn;
	unsigned at = q->tagged ? 1 : 0;
	bool ok = span_equal(line_word(line, at), SPAN("OK"));

	if (q->ask != ASK_NEST)
		return;
	nests_note(c->world);
	if (q->beside) {
		c->nest.gives[q->name] = false;
		nest_has(c, q->name, ok);
		return;
	}
	if (!q->locks) {
		c->nest.gives[q->name] = false;
		c->nest.holds[q->name] = ok && line_int(line, "count") > 0;
		return;
	}
	if (span_equal(line_word(line, at + 1), SPAN("DEADLOCK")) && c->world->now - c->client->nest.stuck_at > OPENED_US)
		checker_fail(c->world, INVARIANT_S29, -1, "client %u waits for n%lld since %lld us and is told DEADLOCK, but was in none since %lld us",
			     c->client->index, (long long)q->name, (long long)q->begun_at, (long long)c->client->nest.stuck_at);
	c->nest.waits = 0;
	nest_has(c, q->name, ok);
}

void nests_pushed(struct conn *c, struct span line)
{
	int64_t name = nest_name(line);

	if (name < 0 || !span_equal(line_word(line, 1), SPAN("LOST")))
		return;
	nests_note(c->world);
	c->nest.holds[name] = false;
}

/* What the session has may live on, and its wait may become a hold that nobody hears of. */
void nests_conn_over(struct conn *c)
{
	if (!c->world->plan->nests)
		return;
	nests_note(c->world);
	c->nest.over_at = c->world->now;
	if (c->nest.waits > 0)
		c->nest.gives[c->nest.waits - 1] = true;
	nests_note(c->world);
}

/* Since when nothing is wrong any more that would keep a deadlock hidden. */
static int64_t calm_since(const struct world *w)
{
	const struct plan *p = w->plan;

	return p->faults == 0 ? p->warm_us : p->length_us + plan_quarantine_us(p) + 3 * SEC;
}

/* Of those that are certainly stuck: is the other one in the way of this one? */
static bool nest_waits_for(const struct conn *c, const struct conn *other)
{
	return other->client != c->client && other->nest.stuck && other->nest.holds[c->nest.waits - 1];
}

/* Those that certainly have it, and are stuck, do not leave enough. */
static bool nest_is_stuck(const struct conn *c)
{
	int64_t name = c->nest.waits - 1, limit = nest_limit(c->world, name), taken = 0;
	const struct conn *other;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
		taken += nest_waits_for(c, other);
	return limit > 0 ? taken >= limit : taken > 0;
}

/* Marks the connections that certainly wait for each other. */
static void nests_mark(struct world *w)
{
	bool more = true;
	struct conn *c;

	TAILQ_FOREACH(c, &w->conns, in_world)
		c->nest.stuck = c->nest.waits > 0 && nest_is_sure(c);
	while (more) {
		more = false;
		TAILQ_FOREACH(c, &w->conns, in_world)
		{
			if (!c->nest.stuck || nest_is_stuck(c))
				continue;
			c->nest.stuck = false;
			more = true;
		}
	}
}

/* The same for this one, and those that it waits for in turn, each once. */
static int64_t circle_follow(struct conn *c)
{
	int64_t since = c->nest.since;
	struct conn *other;

	c->nest.reached = true;
	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (!nest_waits_for(c, other))
			continue;
		since = later(since, other->nest.held_since[c->nest.waits - 1]);
		if (!other->nest.reached)
			since = later(since, circle_follow(other));
	}
	return since;
}

/* True time since when this stuck connection, and all those that it waits for, directly or through others, wait and hold as they do. */
static int64_t circle_since(struct conn *c)
{
	struct conn *other;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
		other->nest.reached = false;
	return circle_follow(c);
}

void nests_step(struct world *w)
{
	struct conn *c;

	if (!w->plan->nests || w->now <= w->checker.nests_at)
		return;
	w->checker.nests_at = w->now + LOOK_US;
	nests_note(w);
	if (w->stage >= STAGE_FINALE || w->strange)
		return;
	nests_mark(w);
	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		int64_t since = c->nest.stuck ? circle_since(c) : w->now;

		if (w->now - later(since, calm_since(w)) > FOUND_US)
			checker_fail(w, INVARIANT_L15, -1, "client %u waits for owners that wait for each other since %lld us, and none is told DEADLOCK",
				     c->client->index, (long long)since);
	}
}
