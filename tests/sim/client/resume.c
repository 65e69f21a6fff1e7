/* SPDX-License-Identifier: BSD-2-Clause */
/* How clients ask for sessions that outlive their connections, resume them, and sort out what they still hold. */
#include "tests/sim/world/world.h"

static void client_hello(struct sim_client *c)
{
	const struct plan *p = c->world->plan;
	char beat[32] = "";
	struct request_sim *q;

	if (p->heartbeat_ms)
		snprintf(beat, sizeof(beat), " heartbeat=%lldms", (long long)p->heartbeat_ms);
	q = client_ask(c, ASK_HELLO, NULL, "HELLO 1 name=c%u%s grace=%lldms", c->index, beat, (long long)p->grace_ms);
	if (!q)
		return;
	q->grace = true;
	q->beat_us = p->heartbeat_ms * MSEC;
}

static void client_ask_resume(struct sim_client *c, bool wrong)
{
	char secret[SECRET_TEXT];
	struct request_sim *q;
	size_t at = c->requests * 7 % (SECRET_TEXT - 1); /* the wrong secret differs in one character, any one */

	memcpy(secret, c->secret, sizeof(secret));
	if (wrong)
		secret[at] = secret[at] == '0' ? '1' : '0';
	q = client_ask(c, ASK_RESUME, NULL, "RESUME %lld %s", (long long)c->session, secret);
	if (!q)
		return;
	q->wait_ms = 2000; /* the daemon may wait so long for adoptions */
	repeater_resumes(c);
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

/* The hold that the row describes; one that is not lost comes first. */
static struct hold *hold_of_row(struct sim_client *c, int64_t name, int64_t owner, int64_t fence)
{
	struct hold *h, *found = NULL;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->client == c && h->name == name && h->owner == owner && h->fence == fence && (!found || !h->lost))
			found = h;
	}
	return found;
}

/* How often the client's tasks have locked the name. */
static int64_t hold_share(const struct hold *h)
{
	const struct world *w = h->client->world;
	int64_t n = 0;

	for (unsigned i = 0; i < w->tasks; i++)
		n += w->task[i].hold == h ? w->task[i].mine : 0;
	return n;
}

static bool hold_goes_on(const struct hold *h)
{
	return h->uses > 0 && !h->conn->left && !h->lost && h->unlocking == 0;
}

void resume_lock_heard(const struct request_sim *q, int64_t fence, int64_t count)
{
	struct sim_client *c = q->conn->client;
	struct hold *h = hold_of_row(c, q->name, q->owner, fence);

	if (h && h->conn != q->conn && hold_goes_on(h) && h->count + 1 == count)
		h->conn = q->conn;
}

/* Releases what no task needs any more, or never heard of, as often as it is held. */
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

void resume_turn_heard(const struct request_sim *q, int64_t fence)
{
	struct sim_client *c = q->conn->client;

	if (q->conn == c->conn && !hold_of_row(c, q->name, q->owner, fence))
		row_unlock(c, q->name, q->owner, fence, 1);
}

/* Gives up all that the client knows of that grant, except one hold. */
static void holds_give_up(struct sim_client *c, int64_t name, int64_t owner, int64_t fence, const struct hold *but)
{
	struct hold *h;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->client == c && h->name == name && h->owner == owner && h->fence == fence && h != but)
			hold_give_up(h);
	}
}

void resume_row_heard(struct sim_client *c, const struct request_sim *q, struct span line)
{
	int64_t name = line_name(line), owner = line_owner(line), fence = line_int(line, "fence"), count = line_int(line, "count");
	struct hold *h = name < 0 ? NULL : hold_of_row(c, name, owner, fence);
	bool goes_on = h && hold_goes_on(h) && h->count == count && (h->conn != q->conn || hold_share(h) == count);

	if (name < 0)
		return;
	holds_give_up(c, name, owner, fence, goes_on ? h : NULL);
	if (!goes_on) {
		row_unlock(c, name, owner, fence, count);
		return;
	}
	h->conn = q->conn;
	hold_believe(h, q, line_int(line, "valid_ms"));
}

/* What no row names is lost, or not decided yet. Some clients wait for SAFE or LOST; others stop believing and release it, in case it is not lost. */
static void holds_wait_or_give_back(struct sim_client *c, const struct request_sim *q)
{
	struct hold *h;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		int64_t count = h->count;

		if (h->client != c || h->conn == q->conn || strcmp(h->conn->secret, q->secret) != 0)
			continue;
		if (h->lost || h->conn->left || count == 0)
			continue;
		if (hold_goes_on(h) && stream_chance(&c->stream, 50)) {
			h->conn = q->conn;
			continue;
		}
		h->lost = true;
		h->count = 0;
		hold_shorten(h, INSTANT_PAST);
		h->promised = h->promised < c->world->now ? h->promised : c->world->now; /* its UNLOCK may acknowledge a loss */
		row_unlock(c, h->name, h->owner, h->fence, count);
	}
}

void resume_heard(struct sim_client *c, const struct request_sim *q, bool ok)
{
	repeater_resumed(c);
	if (ok) {
		c->world->tally.resumed++;
		holds_wait_or_give_back(c, q);
	} else if (!q->wrong) {
		c->secret[0] = '\0';
		client_hello(c);
	}
}
