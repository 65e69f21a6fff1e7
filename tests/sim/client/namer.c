/* SPDX-License-Identifier: BSD-2-Clause */
/* COMPLETE and RECENT, beside the jobs of the clients. */
#include "tests/sim/world/world.h"

#define NAMERS     4
#define PAUSE_US   SEC /* the longest pause between two of them */
#define LIMIT_FULL 100 /* more than there are names */

static void say_complete(struct sim_client *c)
{
	static const char *const prefix[] = {"", " k", " r", " n", " k1", " nothing"};
	int64_t what = stream_range(&c->side, 0, 5), limit = stream_chance(&c->side, 50) ? LIMIT_FULL : stream_range(&c->side, 1, 5);
	struct request_sim *q = client_ask(c, ASK_COMPLETE, NULL, "COMPLETE%s limit=%lld", prefix[what], (long long)limit);

	if (!q)
		return;
	q->prefix = prefix[what][0] ? prefix[what] + 1 : "";
	q->list_limit = limit;
	q->full = limit == LIMIT_FULL && what < 2;
}

static void say_recent(struct sim_client *c)
{
	bool full = stream_chance(&c->side, 70);
	struct request_sim *q = client_ask(c, ASK_RECENT, NULL, "RECENT prefix=k%s", full ? "" : " limit=1");

	if (!q)
		return;
	q->prefix = "k";
	q->list_limit = full ? LIMIT_FULL : 1;
	q->full = full;
}

/* What is refused, and what no invariant follows. */
static void say_other(struct sim_client *c)
{
	static const char *const other[] = {"RECENT", "RECENT limit=101", "COMPLETE limit=1001", "COMPLETE \"\\xff\""};
	int64_t what = stream_range(&c->side, 0, 4);

	if (what == 4)
		client_ask(c, ASK_OTHER, NULL, "COMPLETE %0*d", 600, 0);
	else
		client_ask(c, ASK_OTHER, NULL, "%s", other[what]);
}

void namer_fired(struct sim_client *c)
{
	if (c->world->now > c->world->plan->length_us)
		return; /* in the healed world the bounds are tight */
	if (stream_chance(&c->side, 50))
		say_complete(c);
	else if (stream_chance(&c->side, 70))
		say_recent(c);
	else
		say_other(c);
	world_at(c->world, &c->side_timer, AT_SIDE, c->world->now + stream_skewed(&c->side, MSEC, PAUSE_US));
}

void namer_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (c->index >= NAMERS)
		return;
	stream_init(&c->side, (uint64_t)p->seed, DRAW_SIDE_REQUESTS, c->index);
	world_at(c->world, &c->side_timer, AT_SIDE, p->warm_us + stream_range(&c->side, 0, PAUSE_US));
}
