/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions that outlive their connections: which connection has a session, and what its owners hold (S12, S14, S15). */
#include "tests/sim/world/world.h"

/* The connection that had the session last. */
static struct conn *conn_before(struct conn *c, const char *secret)
{
	struct conn *other, *found = NULL;

	TAILQ_FOREACH(other, &c->world->conns, in_world)
	{
		if (other->secret[0] == secret[0] && other != c && strcmp(other->secret, secret) == 0 && (!found || other->took > found->took))
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

struct account *resumed_account(struct conn *c, int64_t owner, int64_t name)
{
	const struct request_sim *resume = resume_running(c);
	struct conn *from = resume ? conn_before(c, resume->secret) : NULL;
	struct account *a = from ? &from->account[owner][name] : NULL;

	if (a && is_torn(from, c) && a->fence > 0)
		a->vague = a->open = true; /* as in account_moves */
	return a;
}

bool resumed_is_behind(const struct request_sim *q)
{
	return q->conn->resumed || resume_running(q->conn);
}

static void conn_is_told(struct conn *c, struct span line)
{
	c->serial = line_int(line, "session");
	c->serial_step = c->world->checker.step;
}

void resumed_hello(struct request_sim *q, struct span line)
{
	struct span secret = line_field(line, "secret");

	if (!q->grace || secret.n != SECRET_TEXT - 1)
		return;
	memcpy(q->secret, secret.p, secret.n);
	q->secret[secret.n] = '\0';
	conn_takes(q->conn, q->secret);
	conn_is_told(q->conn, line);
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

/* The grant was answered already, to a tagged request that overtook a RESUME: this one, or one that was never answered. */
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

/* L5: what was lost while the session had no connection is told by LOST right after the OK, also where the name is held again. */
static void loss_is_owed(struct conn *c, struct account *a, int64_t fence)
{
	a->owed = fence;
	c->owed = true;
}

void resumed_lost(struct conn *c, int64_t owner, int64_t name, int64_t fence)
{
	struct account *a = &c->account[owner][name];

	if (a->owed == fence)
		a->owed = 0;
}

void resumed_losses_told(struct conn *c)
{
	if (!c->owed)
		return;
	c->owed = false;
	for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++)
			if (c->account[owner][name].owed > 0)
				checker_fail(c->world, INVARIANT_L5, name, "%s: client %u resumed a session that had lost fence %lld, and was not told",
					     name_of(name), c->client->index, (long long)c->account[owner][name].owed);
}

void resumed_row(struct request_sim *q, struct span line)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);
	int64_t name = line_name(line), owner = line_owner(line), fence = line_int(line, "fence"), count = line_int(line, "count");
	struct account none = {0}, *old = from && name >= 0 ? &from->account[owner][name] : &none;

	if (name < 0)
		return;
	row_look(q, name, fence, count, from, old);
	if (old->fence != fence && !was_answered(c, owner, name, fence))
		check_turn(c->world, c->daemon, name, fence);
	c->account[owner][name] = old->fence == fence ? *old : (struct account){.fence = fence};
	c->account[owner][name].count = count;
	c->account[owner][name].open = c->account[owner][name].vague = false;
	if (from && old->count > 0 && old->fence != fence && !old->vague && !is_torn(from, c))
		loss_is_owed(c, &c->account[owner][name], old->fence);
	check_resumed(c, name, owner, fence);
	checker_undelay(c->world, name, fence); /* the hold continues */
	recount_check(c->daemon, name, line_int(line, "valid_ms"), INVARIANT_S9);
	account_vouched(q, &c->account[owner][name], name, line);
}

void resumed_turn(struct request_sim *q, struct account *a, int64_t fence)
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
	if (from) {
		c->serial = from->serial;
		detached_move(c, from);
	}
	for (int64_t owner = 0; from && owner < OWNERS_MAX; owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++)
			account_moves(&c->account[owner][name], &from->account[owner][name], is_torn(from, c));
}

/* Whether each hold that is not lost has a row. */
static bool rows_are_all(struct span line)
{
	return !line_field(line, "open").p && !line_field(line, "more").p;
}

void resumed_ok(struct request_sim *q, struct span line)
{
	struct conn *c = q->conn;

	if (q->wrong)
		checker_fail(q->conn->world, INVARIANT_S12, -1, "client %u resumes session %lld with a wrong secret", q->conn->client->index,
			     (long long)q->conn->client->session);
	broken_resumed(q);
	session_moves(q);
	conn_is_told(c, line);
	for (int64_t owner = 0; owner < OWNERS_MAX && rows_are_all(line); owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++) {
			struct account *a = &c->account[owner][name];

			if (a->count > 0 && a->open && !a->vague)
				loss_is_owed(c, a, a->fence);
		}
}

void resumed_conn_over(struct conn *c)
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

	if (from->daemon != d || !from->detached_at || from->crowded_out)
		return 0;
	if (from->run == c->run)
		return from->detached_at + grace * 98 / 100;
	if (from->run + 1 != c->run || is_torn(from, c) || from->detached_at != d->died_at[from->run % RUNS_MAX])
		return 0;
	return d->started_at + later(grace, d->first_lease_us) * 98 / 100;
}

/* S15: a session does not end before its grace. Nothing is known of a session that its client ended itself, or of another daemon's. */
void resumed_refused(struct request_sim *q, struct span code)
{
	struct conn *c = q->conn, *from = conn_before(c, q->secret);
	struct world *w = c->world;

	if (from && !q->wrong && span_equal(code, SPAN("DRAINING"))) {
		session_moves(q); /* RESUME waited for adoptions when the daemon was stopped: it counts as unanswered, and told no rows */
		for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
			for (int64_t name = 0; name < NAMES_MAX; name++)
				c->account[owner][name].vague |= c->account[owner][name].open;
	}
	if (!from || q->wrong || from->left || !span_equal(code, SPAN("NOTFOUND")))
		return;
	if (w->now < session_known_until(from, c))
		checker_fail(w, INVARIANT_S15, -1,
			     "client %u: its session %lld, without a connection since %lld us, is unknown before its grace is over", c->client->index,
			     (long long)c->client->session, (long long)from->detached_at);
}
