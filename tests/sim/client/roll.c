/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIST sessions, page by page, while sessions come, go and are resumed. A LIST shows the sessions in the order in which they came, each once; and each that had
 * its connection from before the request until the reply (S26). The numbers of sessions with grace are known: HELLO and RESUME tell them.
 */
#include "tests/sim/world/world.h"

#define PAUSE_US   (600 * MSEC) /* the longest pause between two LISTs of a client */
#define LISTERS    4
#define LIMIT_MOST 200
#define OPEN_MOST  3

/* The client waits for so many replies to LIST. */
static unsigned rolls_open(const struct sim_client *c)
{
	const struct request_sim *q;
	unsigned n = 0;

	if (c->conn)
		TAILQ_FOREACH(q, &c->conn->open, at_client)
			n += q->of_sessions;
	return n;
}

void roll_ask(struct sim_client *c)
{
	int64_t limit = stream_skewed(&c->side, 1, LIMIT_MOST), after = stream_chance(&c->side, 50) ? 0 : stream_range(&c->side, 0, 2 * c->session);
	struct request_sim *q;

	if (rolls_open(c) == OPEN_MOST)
		return;
	q = client_ask(c, ASK_LIST, NULL, "LIST sessions limit=%lld after=%lld", (long long)limit, (long long)after);
	if (!q)
		return;
	q->of_sessions = true;
	q->listed = after;
	q->list_limit = limit;
}

/* Another connection takes the session, or has taken it. */
static bool is_taken(const struct conn *c)
{
	const struct request_sim *q;
	const struct conn *other;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (other == c || other->daemon != c->daemon)
			continue;
		if (other->took > c->took && !strcmp(other->secret, c->secret))
			return true;
		TAILQ_FOREACH(q, &other->running, at_daemon)
			if (q->ask == ASK_RESUME && !strcmp(q->secret, c->secret))
				return true;
	}
	return false;
}

/* The connection has had its session since before the request. */
static bool is_there(const struct conn *c, const struct request_sim *q)
{
	bool open = c->daemon_open && !c->going && !c->taken && !c->left && c->daemon == q->conn->daemon && c->run == q->conn->run;

	return open && c->serial_step < q->begun_step && !is_taken(c);
}

/* The rows continue with the session `to`. */
static void roll_passes(struct request_sim *q, int64_t to)
{
	const struct conn *c;

	TAILQ_FOREACH(c, &q->conn->world->conns, in_world)
	{
		if (c->serial > q->listed && c->serial < to && is_there(c, q))
			checker_fail(c->world, INVARIANT_S26, -1, "client %u: a LIST of daemon %u, begun at %lld us, leaves out session %lld of client %u",
				     q->conn->client->index, c->daemon->index, (long long)q->begun_at, (long long)c->serial, c->client->index);
	}
	if (to <= q->listed)
		checker_fail(q->conn->world, INVARIANT_S26, -1, "client %u: a LIST tells session %lld behind session %lld", q->conn->client->index,
			     (long long)to, (long long)q->listed);
	q->listed = to;
}

static void roll_heard(struct request_sim *q, struct span line, bool row)
{
	if (row)
		roll_passes(q, line_int(line, "session"));
	else if (line_int(line, "n") >= 0 && line_int(line, "n") < q->list_limit && line_int(line, "more") <= 0)
		roll_passes(q, INT64_MAX);
}

void list_heard(struct request_sim *q, struct span line, bool row)
{
	if (q->ask == ASK_LIST && q->of_sessions)
		roll_heard(q, line, row);
	else
		storm_listed(q, line);
}

void roll_fired(struct sim_client *c)
{
	if (c->world->now > c->world->plan->length_us)
		return; /* in the healed world the bounds are tight */
	for (int64_t n = stream_range(&c->side, 1, 2); n > 0; n--)
		roll_ask(c);
	world_at(c->world, &c->side_timer, AT_SIDE, c->world->now + stream_skewed(&c->side, MSEC, PAUSE_US));
}

void roll_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (c->index >= LISTERS)
		return;
	stream_init(&c->side, (uint64_t)p->seed, DRAW_SIDE_REQUESTS, c->index);
	world_at(c->world, &c->side_timer, AT_SIDE, p->warm_us + stream_range(&c->side, 0, PAUSE_US));
}
