/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What BREAK and KILL may do. That nobody is granted what was broken too soon is S1 and S13, as ever: a promise ends no sooner
 * because of them.
 */
#include "tests/sim/world/world.h"

/* The session is over: nobody resumes it (S27), and what it held is free when it may be relied on no longer. */
static void secret_is_void(struct world *w, const struct conn *of)
{
	char secret[SECRET_TEXT];
	struct conn *c;

	if (!of->secret[0]) /* a session that was resumed a thousand times has as many connections */
		return;
	memcpy(secret, of->secret, sizeof(secret));
	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		if (c->secret[0] != secret[0] || strcmp(c->secret, secret))
			continue;
		memcpy(c->killed.secret, secret, sizeof(secret));
		c->killed.by = of->daemon;
		c->killed.run = of->run;
		c->killed.at = w->now;
		c->secret[0] = '\0';
	}
}

/* What was killed in the last pass is known to the next run all the same, and nobody was told. */
void broken_torn(const struct sim_daemon *d, int64_t since)
{
	struct conn *c;

	TAILQ_FOREACH(c, &d->world->conns, in_world)
	{
		if (c->killed.by != d || c->killed.at < since)
			continue;
		memcpy(c->secret, c->killed.secret, sizeof(c->secret));
		c->killed.by = NULL;
	}
}

/* Its record may be lost with the end of a journal, so only the run that has killed it is held to this. */
void broken_resumed(const struct request_sim *q)
{
	const struct conn *c;

	TAILQ_FOREACH(c, &q->conn->world->conns, in_world)
		if (c->killed.by == q->conn->daemon && c->killed.run == q->conn->run && !strcmp(c->killed.secret, q->secret))
			checker_fail(c->world, INVARIANT_S27, -1, "client %u resumes a session that was killed", q->conn->client->index);
}

/* Its RESUME may be under way: the session is that of this connection all the same. */
void broken_hung_up(struct conn *c)
{
	resumed_conn_over(c);
	secret_is_void(c->world, c);
}

/* It may have no connection. */
static void session_is_killed(struct sim_daemon *d, int64_t serial)
{
	const struct conn *c;

	TAILQ_FOREACH(c, &d->world->conns, in_world)
		if (c->daemon == d && c->serial == serial)
			secret_is_void(d->world, c);
}

void broken_told(struct request_sim *q, struct span line)
{
	struct world *w = q->conn->world;

	if (q->ask == ASK_WATCH)
		watched_anew(q->conn); /* it may have missed something, or may from now on */
	if (q->ask == ASK_KILL)
		session_is_killed(q->conn->daemon, line_int(line, "session"));
	else if (q->ask == ASK_BREAK && q->name >= 0) /* a value that nobody renews any more blocks the name until it expires */
		checker_excuse(w, q->name, w->now + (w->plan->max_lease_us + w->plan->delay_us) * 51 / 50 + SEC);
}

struct span broken_bare(struct span value)
{
	return span_starts(value, SPAN("!")) ? (struct span){value.p + 1, value.n - 1} : value;
}

/* A BREAK of that name only marks the value, and may be of any daemon. */
bool broken_allows(const struct flight *f, int64_t name, struct span before, struct span after)
{
	for (unsigned i = 0; i < f->count; i++) {
		const struct call *call = &f->call[i];

		if (call->kind != CALL_BREAK || !span_equal(call->name, name_span(name)))
			continue;
		if (after.n == 0 && call->value.n > 0 && call->value.p[0] == '#')
			return true;
		if (after.n == before.n + 1 && after.p[0] == '!' && !memcmp(after.p + 1, before.p, before.n) && span_starts(before, call->value))
			return true;
	}
	return false;
}

/* A value that was torn is nobody's: it needs no mark. */
static bool is_marked(struct span value)
{
	return value.n == 0 || value.p[0] == '!';
}

/* A key that is broken ends no sooner, since its holder may believe as long as it was promised, and it is renewed no more. */
void broken_ran(struct server *s, const struct flight *f, unsigned i)
{
	const struct call *call = &f->call[i];
	int64_t name = name_number(call->name), expires;
	struct span value;

	if (name < 0 || f->count > 1 || !s->live[name])
		return;
	if (call->kind == CALL_EXTEND && !call->exact && is_vote(&f->answer[i]) && s->was_broken[name])
		checker_fail(s->world, INVARIANT_S27, name, "%s: node %u renews for daemon %u a value that was broken", name_of(name), s->index,
			     f->daemon->index);
	if (call->kind != CALL_BREAK || f->answer[i].code != 'X')
		return;
	if (!sim_node_get(s->node, call->name, server_wall(s), &value, &expires) || !is_marked(value) || (expires > 0 && expires < s->ends_ms[name]))
		checker_fail(s->world, INVARIANT_S27, name, "%s: node %u has broken the key for daemon %u, and it ends sooner than before", name_of(name),
			     s->index, f->daemon->index);
}
