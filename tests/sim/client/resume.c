/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions that outlive their connections: how clients resume them, and what is tracked of their holds. */
#include "tests/sim/world/world.h"

/* --- the client ------------------------------------------------------------------------------------------------------ */

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

static int64_t row_owner(struct span line)
{
	int64_t owner = line_int(line, "owner");

	return owner < 0 ? 0 : owner;
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
	int64_t name = line_name(line), owner = row_owner(line), fence = line_int(line, "fence"), count = line_int(line, "count");
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
		row_unlock(c, h->name, h->owner, h->fence, count);
	}
}

void resume_heard(struct sim_client *c, const struct request_sim *q, bool ok)
{
	if (ok) {
		c->world->tally.resumed++;
		holds_wait_or_give_back(c, q);
	} else if (!q->wrong) {
		c->secret[0] = '\0';
		client_hello(c);
	}
}

/* --- what is tracked ------------------------------------------------------------------------------------------------- */

/* The connection that had the session last. */
static struct conn *conn_before(struct conn *c, const char *secret)
{
	struct conn *other, *found = NULL;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (other != c && strcmp(other->secret, secret) == 0 && (!found || other->took > found->took))
			found = other;
	}
	return found;
}

static void conn_takes(struct conn *c, const char *secret)
{
	memcpy(c->secret, secret, sizeof(c->secret));
	c->took = ++c->world->checker.takes;
}

/* The RESUME that the daemon has begun and not answered; NULL: none. */
static struct request_sim *resume_running(struct conn *c)
{
	struct request_sim *q;

	TAILQ_FOREACH(q, &c->running, at_daemon)
	{
		if (q->ask == ASK_RESUME && !q->wrong)
			return q;
	}
	return NULL;
}

/* Lines may have said more than a torn journal kept, however many runs ago. */
static bool is_torn(const struct conn *from, const struct conn *c)
{
	return from->run <= c->daemon->journal.torn;
}

struct account *resume_account(struct conn *c, int64_t owner, int64_t name)
{
	const struct request_sim *resume = resume_running(c);
	struct conn *from = resume ? conn_before(c, resume->secret) : NULL;
	struct account *a = from ? &from->account[owner][name] : NULL;

	if (a && is_torn(from, c) && a->fence > 0)
		a->vague = a->open = true; /* as in account_moves */
	return a;
}

bool resume_is_behind(const struct request_sim *q)
{
	return q->conn->resumed || resume_running(q->conn);
}

void resume_hello_said(struct request_sim *q, struct span line)
{
	struct span secret = line_field(line, "secret");

	if (!q->grace || secret.n != SECRET_TEXT - 1)
		return;
	memcpy(q->secret, secret.p, secret.n);
	q->secret[secret.n] = '\0';
	conn_takes(q->conn, q->secret);
}

static void row_look(struct request_sim *q, int64_t name, int64_t fence, int64_t count, const struct conn *from, const struct account *old)
{
	struct world *w = q->conn->world;
	bool torn = from && (old->vague || is_torn(from, q->conn));

	if (old->fence == fence && old->count == 0 && !torn)
		checker_fail(w, INVARIANT_S14, name, "%s: client %u resumes fence %lld, which was released or lost", name_of(name),
			     q->conn->client->index, (long long)fence);
	else if (old->fence == fence && old->count != count && !torn)
		checker_fail(w, INVARIANT_S15, name, "%s: client %u resumes count=%lld, but it was %lld", name_of(name),
			     q->conn->client->index, (long long)count, (long long)old->count);
	else if (fence < old->fence && w->tokens_are_safe)
		checker_fail(w, INVARIANT_S15, name, "%s: client %u resumes fence %lld, but it already had %lld", name_of(name),
			     q->conn->client->index, (long long)fence, (long long)old->fence);
}

/* The grant was answered already, to a tagged request that overtook a RESUME: of this RESUME, or of one that was never answered. */
static bool was_answered(const struct conn *c, int64_t owner, int64_t name, int64_t fence)
{
	const struct conn *other;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (other->client == c->client && other->account[owner][name].fence == fence)
			return true;
	}
	return false;
}

void resume_row_said(struct request_sim *q, struct span line)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);
	int64_t name = line_name(line), owner = row_owner(line), fence = line_int(line, "fence"), count = line_int(line, "count");
	struct account none = {0}, *old = from && name >= 0 ? &from->account[owner][name] : &none;

	if (name < 0)
		return;
	row_look(q, name, fence, count, from, old);
	if (old->fence != fence && !was_answered(c, owner, name, fence))
		check_turn(c->world, c->daemon, name, fence);
	c->account[owner][name] = old->fence == fence ? *old : (struct account){.fence = fence};
	c->account[owner][name].count = count;
	c->account[owner][name].open = c->account[owner][name].vague = false;
	check_resumed(c, name, owner, fence);
	checker_undelay(c->world, name, fence); /* the hold continues */
	recount_check(c->daemon, name, line_int(line, "valid_ms"), INVARIANT_S9);
	account_vouched(q, &c->account[owner][name], name, line);
}

void resume_turn_said(struct request_sim *q, struct account *a, int64_t fence)
{
	check_turn(q->conn->world, q->conn->daemon, q->name, fence);
	*a = (struct account){.count = 1, .fence = fence};
	check_resumed(q->conn, q->name, q->owner, fence);
}

/*
 * A hold without a row is not decided yet. Nor is one that was released before a torn journal: the release may not have been written, or its reply not have
 * left.
 */
static void account_moves(struct account *to, struct account *from, bool torn)
{
	if (to->count == 0) {
		*to = *from;
		to->vague = from->vague || (torn && from->fence > 0);
		to->open = from->count > 0 || to->vague;
	}
	from->count = 0;
}

/* From now on the session belongs to this connection, whatever becomes of the previous one. */
static void session_moves(struct request_sim *q)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);

	conn_takes(c, q->secret);
	c->resumed = true;
	if (from)
		detached_move(c, from);
	for (int64_t owner = 0; from && owner < OWNERS_MAX; owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++)
			account_moves(&c->account[owner][name], &from->account[owner][name], is_torn(from, c));
}

void resume_said(struct request_sim *q)
{
	if (q->wrong)
		checker_fail(q->conn->world, INVARIANT_S12, -1, "client %u resumes session %lld with a wrong secret", q->conn->client->index,
			     (long long)q->conn->client->session);
	session_moves(q);
}

void resume_unsaid(struct conn *c)
{
	struct request_sim *q = resume_running(c);

	if (q && conn_before(c, q->secret))
		session_moves(q);
}

/*
 * True time until which the daemon must know the session: its grace counts from the loss of its connection, or, after a restart, from the start of the daemon.
 * 0: unknown.
 */
static int64_t session_known_until(const struct conn *from, const struct conn *c)
{
	const struct plan *p = c->world->plan;
	const struct sim_daemon *d = c->daemon;
	int64_t grace = p->grace_ms * MSEC;

	if (from->daemon != d || !from->detached_at)
		return 0;
	if (from->run == c->run)
		return from->detached_at + grace * 98 / 100;
	if (from->run + 1 != c->run || is_torn(from, c) || from->detached_at != d->died_at[from->run % RUNS_MAX])
		return 0;
	return d->started_at + (grace > d->conf.lease_us ? grace : d->conf.lease_us) * 98 / 100;
}

/* S15: a session does not end before its grace. Nothing is known of a session that its client ended itself, or of another daemon's. */
void resume_refused(struct request_sim *q, struct span code)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);
	struct world *w = c->world;

	if (!from || q->wrong || from->left || !span_equal(code, SPAN("NOTFOUND")))
		return;
	if (w->now < session_known_until(from, c))
		checker_fail(w, INVARIANT_S15, -1,
			     "client %u: its session %lld, without a connection since %lld us, is unknown before its grace is over", c->client->index,
			     (long long)c->client->session, (long long)from->detached_at);
}
