/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that hold some names, n0 …, and wait for more, in random order, beside the jobs. They run into deadlocks all the time. A client that is refused
 * releases all that it holds, now or later, and begins anew. They are owners of their own, so that jobs do not mix with them. What they believe is not
 * checked: other names show that. In some worlds a client that holds nothing and waits is granted another name meanwhile, by a group.
 */
#include "tests/sim/world/world.h"

#define PAUSE_US       (300 * MSEC)
#define HOLD_US        (4 * SEC)
#define AGAIN_US       (200 * MSEC)
#define END_BEFORE_US  SEC
#define NESTERS        8

int64_t nest_name(struct span line)
{
	struct span name = line_field(line, "name");

	return name.n == 2 && name.p[0] == 'n' && name.p[1] >= '0' && name.p[1] < '0' + NEST_NAMES ? name.p[1] - '0' : -1;
}

int64_t nest_limit(const struct world *w, int64_t name)
{
	return w->plan->nests == 2 && name < 2 ? 2 + name : 0;
}

static void nester_wakes(struct sim_client *c, int64_t most_us)
{
	world_at(c->world, &c->nest.timer, AT_NESTER, c->world->now + stream_skewed(&c->nest.stream, MSEC, most_us));
}

static void say_unlock(struct sim_client *c, int64_t name)
{
	const char *word = nest_limit(c->world, name) > 0 ? "RELEASE" : "UNLOCK";
	struct request_sim *q = client_ask(c, ASK_NEST, NULL, "%s n%lld owner=nest", word, (long long)name);

	if (q)
		q->name = name;
}

/* A group of one name stands for it as a LOCK does. */
static const char *lock_word(struct sim_client *c)
{
	if (!c->world->plan->nests_group || !stream_chance(&c->nest.stream, 30))
		return "LOCK";
	return stream_chance(&c->nest.stream, 50) ? "LOCKALL" : "LOCKANY";
}

static void say_lock(struct sim_client *c, int64_t name)
{
	int64_t wait_ms = stream_chance(&c->nest.stream, 40) ? -1 : stream_range(&c->nest.stream, 1000, 5000);
	char wait[32] = "forever";
	struct request_sim *q;

	if (wait_ms > 0)
		snprintf(wait, sizeof(wait), "%lldms", (long long)wait_ms);
	if (nest_limit(c->world, name) > 0)
		q = client_ask(c, ASK_NEST, NULL, "ACQUIRE n%lld limit=%lld owner=nest wait=%s", (long long)name,
			       (long long)nest_limit(c->world, name), wait);
	else
		q = client_ask(c, ASK_NEST, NULL, "%s n%lld owner=nest wait=%s", lock_word(c), (long long)name, wait);
	if (!q)
		return;
	q->name = name;
	q->locks = true;
	q->group = c->world->plan->nests_group ? 1U << name : 0;
	q->wait_ms = wait_ms;
	c->nest.asks = true;
}

/* A name that it does not want otherwise until it begins anew. */
static void say_beside(struct sim_client *c)
{
	struct nest *n = &c->nest;
	int64_t name = n->order[NEST_NAMES - 1];
	struct request_sim *q;

	if (!c->world->plan->nests_group || n->have > 0 || n->beside || n->asks_beside || nest_limit(c->world, name) > 0 || !stream_chance(&n->stream, 50))
		return;
	q = client_ask(c, ASK_NEST, NULL, "%s n%lld owner=nest", stream_chance(&n->stream, 50) ? "LOCKALL" : "LOCKANY", (long long)name);
	if (!q)
		return;
	q->name = name;
	q->beside = true;
	q->group = 1U << name;
	n->asks_beside = true;
}

/* Other names in another order next time. */
static void nester_begins(struct sim_client *c)
{
	struct nest *n = &c->nest;

	n->have = n->beside = 0;
	n->want = stream_range(&n->stream, 2, NEST_NAMES - 1);
	for (int64_t i = 0; i < NEST_NAMES; i++)
		n->order[i] = i;
	for (int64_t i = NEST_NAMES - 1; i > 0; i--) {
		int64_t k = stream_range(&n->stream, 0, i), name = n->order[i];

		n->order[i] = n->order[k];
		n->order[k] = name;
	}
}

static void nester_releases(struct sim_client *c)
{
	for (int64_t i = 0; i < c->nest.have; i++)
		say_unlock(c, c->nest.order[i]);
	if (c->nest.beside)
		say_unlock(c, c->nest.beside - 1);
	nester_begins(c);
}

/* Over a new connection, whose session may hold what an earlier one had. */
static void nester_meets(struct sim_client *c)
{
	c->nest.conn = c->conn;
	c->nest.asks = c->nest.asks_beside = false;
	for (int64_t name = 0; name < NEST_NAMES; name++)
		say_unlock(c, name);
	nester_begins(c);
}

void nester_heard(struct sim_client *c, const struct request_sim *q, bool ok)
{
	struct nest *n = &c->nest;

	if (q->beside && q->conn == n->conn) {
		n->asks_beside = false;
		n->beside = ok ? q->name + 1 : 0;
	}
	if (!q->locks || q->conn != n->conn || !n->asks)
		return;
	n->asks = false;
	n->have += ok;
	if (!ok && (n->asks_beside || (n->have > 0 && stream_chance(&n->stream, 50))))
		n->want = n->have; /* it goes on with what it has */
	else if (!ok)
		nester_releases(c);
	nester_wakes(c, n->have == n->want ? HOLD_US : PAUSE_US);
}

/* What the session has by then is told with the answer to RESUME: an UNLOCK before that finds what is still waited for not held. */
static bool nester_resumes(const struct sim_client *c)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q->ask == ASK_RESUME)
			return true;
	return false;
}

void nester_fired(struct sim_client *c)
{
	struct world *w = c->world;
	struct nest *n = &c->nest;
	bool ready = c->conn && !c->conn->left && c->state == CLIENT_RUNNING && (n->conn == c->conn || !nester_resumes(c));

	if (w->now > w->plan->length_us + settle_us(w->plan) - END_BEFORE_US) {
		if (ready)
			nester_meets(c);
		return;
	}
	if (ready && n->conn != c->conn)
		nester_meets(c);
	else if (ready && !n->asks && n->have == n->want && !n->asks_beside)
		nester_releases(c);
	else if (ready && !n->asks && n->have < n->want) {
		say_lock(c, n->order[n->have]);
		say_beside(c);
	}
	if (!n->asks || !ready || n->conn != c->conn)
		nester_wakes(c, PAUSE_US);
	else
		world_at(w, &n->timer, AT_NESTER, w->now + AGAIN_US); /* the connection may be lost meanwhile */
}

void nester_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (!p->nests || c->index >= NESTERS)
		return;
	stream_init(&c->nest.stream, (uint64_t)p->seed, DRAW_NESTS, c->index);
	nester_begins(c);
	world_at(c->world, &c->nest.timer, AT_NESTER, p->warm_us + stream_range(&c->nest.stream, 0, PAUSE_US));
}
