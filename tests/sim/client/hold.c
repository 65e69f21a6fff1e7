/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client believes of a grant, and for how long. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

struct hold *hold_find(struct conn *conn, int64_t name, int64_t owner)
{
	struct hold *h, *found = NULL;

	TAILQ_FOREACH(h, &conn->world->holds, in_world)
	{
		if (h->conn == conn && h->name == name && h->owner == owner)
			found = h; /* the latest */
	}
	return found;
}

static const struct host *host_of(const struct sim_client *c)
{
	return c->remote ? &c->own : &c->daemon->host;
}

bool hold_is_believed(const struct hold *h)
{
	return instant_before(client_boot(h->client), h->deadline);
}

bool hold_is_acted_with(const struct hold *h)
{
	const struct hold *other;

	TAILQ_FOREACH(other, &h->client->world->holds, in_world)
	{
		if (other->acting && other->client == h->client && other->name == h->name && other->fence == h->fence)
			return true;
	}
	return false;
}

void hold_shorten(struct hold *h, struct instant deadline)
{
	if (!instant_before(deadline, h->deadline))
		return;
	h->deadline = deadline;
	h->until = deadline.us == INT64_MIN ? 0 : host_true(host_of(h->client), deadline);
}

void hold_disclaim(struct hold *h)
{
	hold_shorten(h, INSTANT_PAST);
	h->promised = 0;
}

void hold_give_up(struct hold *h)
{
	hold_disclaim(h);
	h->lost = true;
	h->count = 0;
}

void hold_released(struct world *w, int64_t name, int64_t fence)
{
	struct hold *h;

	TAILQ_FOREACH(h, &w->holds, in_world)
	{
		if (h->name == name && h->fence == fence && h->lost)
			h->promised = 0;
	}
}

struct instant extend_end(const struct request_sim *q)
{
	return instant_add(q->anchor, q->ttl_ms * MSEC * 99 / 100 - 3 * MSEC);
}

/* A reply that comes while an EXTEND is not answered may not know of it yet: a request behind it may overtake it, and one before it may be answered late. */
static struct instant hold_asked_until(const struct hold *h, const struct conn *conn)
{
	struct instant until = INSTANT_NEVER;
	const struct request_sim *q;

	TAILQ_FOREACH(q, &conn->open, at_client)
	{
		if (q->ask == ASK_EXTEND && q->name == h->name && q->owner == h->owner)
			until = instant_min(until, extend_end(q));
	}
	return until;
}

void hold_believe(struct hold *h, const struct request_sim *q, int64_t valid_ms)
{
	if (h->lost || h->conn->left || valid_ms < 0 || (int64_t)h->unlocking >= h->count)
		return;
	h->deadline = instant_add(q->anchor, valid_ms * MSEC);
	h->deadline = instant_min(h->deadline, hold_asked_until(h, q->conn));
	h->until = host_true(host_of(h->client), h->deadline);
	h->promised = h->until;
	world_note(h->client->world, 24, (uint64_t)h->until, "c%u relies on %s fence %lld until %lld", h->client->index,
		   name_of(h->name), (long long)h->fence, (long long)h->until);
	check_belief(h->client->world, h);
}

static struct hold *hold_new(struct request_sim *q, int64_t fence)
{
	struct world *w = q->conn->world;
	struct hold *h = calloc(1, sizeof(*h));

	if (!h)
		abort();
	h->client = q->conn->client;
	h->conn = q->conn;
	h->name = q->name;
	h->owner = q->owner;
	h->fence = fence;
	h->deadline = INSTANT_PAST;
	TAILQ_INSERT_TAIL(&w->holds, h, in_world);
	return h;
}

/* Frees holds that nobody can rely on any more and that no task refers to. */
static void holds_trim(struct world *w)
{
	struct hold *h, *next;

	for (h = TAILQ_FIRST(&w->holds); h; h = next) {
		next = TAILQ_NEXT(h, in_world);
		if (h->uses > 0 || h->count > 0 || h->until > w->now || h->promised > w->now)
			continue;
		TAILQ_REMOVE(&w->holds, h, in_world);
		free(h);
	}
}

/* UNLOCKs under way that may end this grant: an untagged one waits behind an untagged LOCK, a tagged one overtakes it. */
static unsigned unlocks_open(const struct request_sim *q, int64_t fence)
{
	const struct request_sim *other;
	unsigned n = 0;

	TAILQ_FOREACH(other, &q->conn->open, at_client)
	{
		n += other->ask == ASK_UNLOCK && other->name == q->name && other->owner == q->owner &&
		     (!other->fence || other->fence == fence);
	}
	return n;
}

struct hold *hold_granted(struct request_sim *q, int64_t fence, int64_t count, int64_t valid_ms)
{
	struct hold *h = hold_find(q->conn, q->name, q->owner);

	if (!h || h->fence != fence || h->lost) {
		holds_trim(q->conn->world);
		h = hold_new(q, fence);
	}
	h->count = count;
	h->unlocking = unlocks_open(q, fence);
	hold_believe(h, q, valid_ms);
	return h;
}

void conn_disclaim_all(struct conn *conn)
{
	struct hold *h;

	conn->left = true;
	TAILQ_FOREACH(h, &conn->world->holds, in_world)
	{
		if (h->conn != conn)
			continue;
		hold_disclaim(h);
		h->count = 0;
	}
}

void session_disclaim_all(struct sim_client *c)
{
	struct hold *h;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->client != c || !c->secret[0] || strcmp(h->conn->secret, c->secret) != 0)
			continue;
		hold_disclaim(h);
		h->count = 0;
	}
	c->secret[0] = '\0';
	reader_disclaim_all(c);
	permitter_disclaim_all(c);
	worker_disclaim(c);
	repeater_disclaim(c);
	conn_disclaim_all(c->conn);
}

void client_disclaim_all(struct sim_client *c)
{
	struct hold *h;

	if (c->conn)
		c->conn->left = true;
	reader_disclaim_all(c);
	permitter_disclaim_all(c);
	worker_disclaim(c);
	repeater_disclaim(c);
	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->client != c)
			continue;
		hold_disclaim(h);
		h->count = 0;
	}
}
