/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions that outlive their connections: how clients come back to them, and the books of what they had. */
#include "tests/sim/world.h"

/* --- the client ------------------------------------------------------------------------------------------------------ */

static void client_hello(struct sim_client *c)
{
	const struct plan *p = c->world->plan;
	char beat[32] = "";
	struct request_sim *q;

	if (p->heartbeat_ms)
		snprintf(beat, sizeof(beat), " heartbeat=%lldms", (long long)p->heartbeat_ms);
	q = client_ask(c, ASK_HELLO, NULL, "HELLO 1 name=c%u%s grace=%lldms", c->index, beat, (long long)p->grace_ms);
	if (q)
		q->grace = true;
}

static void client_ask_resume(struct sim_client *c, bool wrong)
{
	char secret[SECRET_TEXT];
	struct request_sim *q;

	memcpy(secret, c->secret, sizeof(secret));
	if (wrong)
		secret[31] = secret[31] == '0' ? '1' : '0';
	q = client_ask(c, ASK_RESUME, NULL, "RESUME %lld %s", (long long)c->session, secret);
	if (!q)
		return;
	q->wait_ms = 2000; /* it may wait so long for adoptions */
	q->wrong = wrong;
	memcpy(q->secret, c->secret, sizeof(q->secret));
}

void resume_greet(struct sim_client *c)
{
	if (c->secret[0] && stream_chance(&c->stream, 10))
		client_ask_resume(c, true);
	if (c->secret[0])
		client_ask_resume(c, false);
	else
		client_hello(c);
}

void resume_hello_heard(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct span secret = line_field(line, "secret");

	if (!q->grace || secret.n != SECRET_TEXT - 1)
		return;
	c->session = line_int(line, "session");
	memcpy(c->secret, secret.p, secret.n);
	c->secret[secret.n] = '\0';
}

static struct hold *hold_of_row(struct sim_client *c, int64_t name, int64_t owner, int64_t fence)
{
	struct hold *h;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->client == c && h->name == name && h->owner == owner && h->fence == fence)
			return h;
	}
	return NULL;
}

/* What no job of it needs any more, or never heard of, is given back: as often as it is held. */
static void row_unlock(struct sim_client *c, int64_t name, int64_t owner, int64_t fence, int64_t count)
{
	char word[32] = "";

	if (owner)
		snprintf(word, sizeof(word), " owner=%lld", (long long)owner);
	for (; count > 0; count--) {
		struct request_sim *q =
			client_ask(c, ASK_UNLOCK, NULL, "UNLOCK %s%s fence=%lld", name_of(name), word, (long long)fence);

		if (!q)
			return;
		q->name = name;
		q->owner = owner;
		q->fence = fence;
	}
}

static int64_t row_owner(struct span line)
{
	int64_t owner = line_int(line, "owner");

	return owner < 0 ? 0 : owner;
}

void resume_row_heard(struct sim_client *c, const struct request_sim *q, struct span line)
{
	int64_t name = line_name(line), owner = row_owner(line), fence = line_int(line, "fence"), count = line_int(line, "count");
	struct hold *h = name < 0 ? NULL : hold_of_row(c, name, owner, fence);

	if (name < 0)
		return;
	if (!h || h->uses == 0 || h->conn->left || h->lost || h->unlocking > 0 || h->count != count) {
		if (h)
			hold_disclaim(h);
		row_unlock(c, name, owner, fence, count);
		return;
	}
	h->conn = q->conn;
	hold_believe(h, q->anchor, line_int(line, "valid_ms"));
}

/* What no row names is lost: believed no more, though nobody else may have it before what was promised is over. */
static void holds_lose_rest(struct sim_client *c, const struct request_sim *q)
{
	struct hold *h;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->client != c || h->conn == q->conn || strcmp(h->conn->secret, q->secret) != 0)
			continue;
		h->lost = true;
		h->count = 0;
		hold_shorten(h, INSTANT_PAST);
	}
}

void resume_heard(struct sim_client *c, const struct request_sim *q, bool ok)
{
	if (ok) {
		c->world->tally.resumed++;
		holds_lose_rest(c, q);
	} else if (!q->wrong) {
		c->secret[0] = '\0';
		client_hello(c);
	}
}

/* --- the books ------------------------------------------------------------------------------------------------------- */

/* The connection that had this session last. */
static struct conn *conn_before(struct conn *c, const char *secret)
{
	struct conn *other, *found = NULL;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (other != c && strcmp(other->secret, secret) == 0)
			found = other;
	}
	return found;
}

struct account *resume_account(const struct request_sim *q)
{
	const struct request_sim *other;

	TAILQ_FOREACH(other, &q->conn->running, at_daemon)
	{
		struct conn *from = other->ask == ASK_RESUME && !other->wrong ? conn_before(q->conn, other->secret) : NULL;

		if (from)
			return &from->account[q->owner][q->name];
	}
	return NULL;
}

void resume_hello_said(struct request_sim *q, struct span line)
{
	struct span secret = line_field(line, "secret");

	if (!q->grace || secret.n != SECRET_TEXT - 1)
		return;
	memcpy(q->conn->secret, secret.p, secret.n);
	q->conn->secret[secret.n] = '\0';
}

static void row_look(struct request_sim *q, int64_t name, int64_t fence, int64_t count, const struct conn *from, const struct account *old)
{
	struct world *w = q->conn->world;
	bool torn = from && from->life <= q->conn->daemon->journal.torn; /* the books may know more, however many lives ago */

	if (old->fence == fence && old->count == 0 && !torn)
		checker_fail(w, INVARIANT_S14, name, "%s: client %u resumes fence %lld, which was given back or lost", name_of(name),
			     q->conn->client->index, (long long)fence);
	else if (old->fence == fence && old->count != count && !torn)
		checker_fail(w, INVARIANT_S15, name, "%s: client %u resumes count=%lld, it was %lld", name_of(name),
			     q->conn->client->index, (long long)count, (long long)old->count);
	else if (fence < old->fence)
		checker_fail(w, INVARIANT_S15, name, "%s: client %u resumes fence %lld, but it had %lld after that", name_of(name),
			     q->conn->client->index, (long long)fence, (long long)old->fence);
}

void resume_row_said(struct request_sim *q, struct span line)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);
	int64_t name = line_name(line), owner = row_owner(line), fence = line_int(line, "fence"), count = line_int(line, "count");
	struct account none = {0}, *old = from && name >= 0 ? &from->account[owner][name] : &none;
	bool told = name >= 0 && c->account[owner][name].fence == fence; /* granted to what came tagged behind this RESUME, and answered before it */

	if (name < 0)
		return;
	row_look(q, name, fence, count, from, old);
	if (old->fence != fence && !told)
		check_turn(c->world, c->daemon, name, fence);
	c->account[owner][name] = (struct account){.count = count, .fence = fence};
	check_resumed(c, name, owner, fence);
	checker_undelay(c->world, name, fence); /* its session goes on */
	witness_vouch(c->daemon, name, line_int(line, "valid_ms"), INVARIANT_S9);
}

/* From now on it is this connection's, whatever comes of the one before. */
void resume_said(struct request_sim *q)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);

	if (q->wrong)
		checker_fail(c->world, INVARIANT_S12, -1, "client %u resumes session %lld with a wrong secret", c->client->index,
			     (long long)c->client->session);
	memcpy(c->secret, q->secret, sizeof(c->secret));
	c->resumed = true;
	if (!from)
		return;
	for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++) {
			if (c->account[owner][name].count == 0)
				c->account[owner][name].fence = from->account[owner][name].fence;
			from->account[owner][name].count = 0;
		}
}

/* A session is not over before its grace is. Of one that the client itself has ended, or another life's, nobody knows. */
void resume_refused(struct request_sim *q, struct span code)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);
	struct world *w = c->world;

	if (!from || q->wrong || from->life != c->life || from->left || !from->detached_at || !span_equal(code, SPAN("NOTFOUND")))
		return;
	if (w->now - from->detached_at < w->plan->grace_ms * MSEC * 98 / 100)
		checker_fail(w, INVARIANT_S15, -1, "client %u: session %lld is not known any more, lost at %lld us", c->client->index,
			     (long long)c->client->session, (long long)from->detached_at);
}

/* A connection ends, its session stays: what it holds, and its places in line, are there until the grace is over and nobody may believe any more. */
void resume_detached(struct conn *c)
{
	struct world *w = c->world;
	const struct plan *p = w->plan;
	int64_t grace = p->grace_ms * MSEC, until = w->now + (grace > p->lease_us ? grace : p->lease_us) * 51 / 50 + SEC;
	struct request_sim *q;

	c->detached_at = w->now;
	TAILQ_FOREACH(q, &c->running, at_daemon)
	{
		if (q->ask != ASK_LOCK)
			continue;
		w->checker.orphans_until[c->daemon->index][q->name] = until;
		w->checker.lease[c->daemon->index][q->name].unseen = true;
		checker_excuse(w, q->name, until + (p->max_lease_us + p->delay_us) * 51 / 50);
	}
	for (int64_t name = 0; name < NAMES_MAX; name++)
		for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
			if (c->account[owner][name].count > 0)
				checker_excuse(w, name, until + (p->max_lease_us + p->delay_us) * 51 / 50);
}
