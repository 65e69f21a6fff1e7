/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that break locks, of their own daemon or of another, and kill sessions. What the holders believe is checked as ever: nobody is granted a lock before
 * its holder has acknowledged the loss, or cannot believe any more (S1, S13). Some of these clients watch, and must be told what others do (S28).
 */
#include "tests/sim/world/world.h"

#define BREAKERS 3
#define SESSIONS_SEEN 20 /* the latest ones */

static void breaker_pause(struct sim_client *c)
{
	const struct world *w = c->world;

	world_at(c->world, &c->side_timer, AT_SIDE, w->now + stream_skewed(&c->side, MSEC, 2 * w->plan->breaks_ms * MSEC));
}

/* A session that some client can resume; else one of the latest numbers, which grow with the connections. */
static void breaker_kill(struct sim_client *c)
{
	const struct world *w = c->world;
	int64_t last = w->conn_count / w->plan->daemons + 1;
	int64_t number = w->client[stream_range(&c->side, 0, w->plan->clients - 1)].session;

	if (!number || stream_chance(&c->side, 30))
		number = stream_range(&c->side, last > SESSIONS_SEEN ? last - SESSIONS_SEEN : 1, last);
	client_ask(c, ASK_KILL, NULL, "KILL session=%lld", (long long)number);
}

/* In worlds with readers, a name of theirs. */
static bool breaker_reads(struct sim_client *c)
{
	return c->world->plan->readers && stream_chance(&c->breaks, 50);
}

static void breaker_break_read(struct sim_client *c)
{
	struct request_sim *q = client_ask(c, ASK_BREAK, NULL, "BREAK r%lld", (long long)stream_range(&c->breaks, 0, READ_NAMES - 1));

	if (q)
		q->name = -1;
}

/* In worlds with semaphores, one of them: all its permits of that daemon are lost. */
static bool breaker_break_semaphore(struct sim_client *c)
{
	struct request_sim *q;

	if (!c->world->plan->permits || !stream_chance(&c->breaks, 30))
		return false;
	q = client_ask(c, ASK_BREAK, NULL, "BREAK p%lld", (long long)stream_range(&c->breaks, 0, SEMAPHORES - 1));
	if (q)
		q->name = -1;
	return true;
}

static void breaker_break(struct sim_client *c)
{
	int64_t name = stream_range(&c->side, 0, c->world->plan->names - 1);
	struct request_sim *q = client_ask(c, ASK_BREAK, NULL, "BREAK %s", name_of(name));

	if (q)
		q->name = name;
}

void breaker_fired(struct sim_client *c)
{
	static const char *const others[] = {"UNWATCH k", "UNWATCH nothing", "UNSUBSCRIBE", "WATCH", "UNWATCH", "KILL", "BREAK nothing"};
	const struct world *w = c->world;

	if (w->now > w->plan->length_us)
		return; /* in the healed world the bounds are tight */
	switch (stream_range(&c->side, 0, 9)) {
	case 0:
	case 3:
		breaker_kill(c);
		break;
	case 1:
		client_ask(c, ASK_WATCH, NULL, !stream_chance(&c->side, 50) ? "SUBSCRIBE" : breaker_reads(c) ? "WATCH r" : "WATCH k");
		break;
	case 2:
		client_ask(c, ASK_WATCH, NULL, "%s", others[stream_range(&c->side, 0, (int64_t)(sizeof(others) / sizeof(others[0])) - 1)]);
		break;
	default:
		if (breaker_reads(c))
			breaker_break_read(c);
		else if (!breaker_break_semaphore(c))
			breaker_break(c);
		break;
	}
	breaker_pause(c);
}

void breaker_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (c->index >= BREAKERS)
		return;
	stream_init(&c->side, (uint64_t)p->seed, DRAW_SIDE_REQUESTS, c->index);
	stream_init(&c->breaks, (uint64_t)p->seed, DRAW_BREAKERS, c->index);
	world_at(c->world, &c->side_timer, AT_SIDE, p->warm_us + stream_range(&c->side, 0, p->breaks_ms * MSEC));
}
