/* SPDX-License-Identifier: BSD-2-Clause */
/* S39: what rules deny is not granted, what they allow is not denied, whoever waits is refused as soon as they change, and what is held may go back.
 * Whoever waits is judged in portions, and may get its turn before. */
#include "tests/sim/world/world.h"

/* The words behind the verb are names, up to the first field. */
static bool is_grant(struct span asked)
{
	return span_starts(asked, SPAN("LOCK ")) || span_starts(asked, SPAN("LOCKALL ")) || span_starts(asked, SPAN("LOCKANY ")) ||
	       span_starts(asked, SPAN("ACQUIRE "));
}

static bool is_take(struct span asked)
{
	return span_starts(asked, SPAN("TAKE "));
}

/* After RESUME it may be answered with a job that the session has already, and that needs no right. */
static bool is_take_of_new(const struct request_sim *q)
{
	return is_take(span_of(q->asked)) && !q->conn->resumed;
}

static bool some_is_denied(const struct request_sim *q)
{
	struct span asked = span_of(q->asked), word;

	for (unsigned i = 1; (word = line_word(asked, i)).n > 0 && !memchr(word.p, '=', word.n); i++)
		if (ruled_denies(q->conn, word))
			return true;
	return false;
}

bool ruled_out(const struct request_sim *q)
{
	return q->conn->world->plan->rules_ms && some_is_denied(q);
}

static void fail(const struct request_sim *q, const char *what, struct span line)
{
	checker_fail(q->conn->world, INVARIANT_S39, -1, "client %u asks %s, %s: %.*s", q->conn->client->index, q->asked, what, (int)line.n, line.p);
}

/* It may have waited as the rules came, and is not judged yet. */
static bool is_unjudged(const struct request_sim *q)
{
	return q->conn->daemon->rules.judging && q->sent_at <= q->conn->daemon->rules.since;
}

/* As far as lines tell. */
static bool is_held(const struct request_sim *q)
{
	const struct conn *c = q->conn;

	if (q->ask == ASK_UNLOCK)
		return account_of(q)->count > 0 && !account_of(q)->vague && !account_of(q)->open;
	return q->ask == ASK_READ && q->reads == READ_UNLOCK && c->read_count[q->name] > 0 && !c->client->graced;
}

void ruled_said(struct request_sim *q, struct span line, struct span word)
{
	struct span asked = span_of(q->asked);
	bool ok = span_equal(word, SPAN("OK")), denied = span_equal(word, SPAN("ERR")) && span_equal(line_word(line, q->tagged ? 2 : 1), SPAN("DENIED"));

	if (!q->conn->world->plan->rules_ms)
		return;
	if (ok && (is_grant(asked) || is_take_of_new(q)) && some_is_denied(q) && !is_unjudged(q))
		fail(q, "which the rules deny, and is granted it", line);
	if (ok && is_take_of_new(q) && line_field(line, "name").n > 0 && ruled_denies(q->conn, line_field(line, "name")) && !is_unjudged(q))
		fail(q, "and gets a job with a lock that the rules deny", line);
	if (denied && is_grant(asked) && !some_is_denied(q))
		fail(q, "which the rules allow, and is denied it", line);
	if (denied && is_held(q))
		fail(q, "which it holds, and may not give it back", line);
}

static bool waits_denied(const struct request_sim *q)
{
	return !running_awaits(q) && (is_grant(span_of(q->asked)) || is_take_of_new(q)) && some_is_denied(q);
}

/* The daemon has judged all by its new rules: whoever may not have what it waits for, was told so. One that waits for its RESUME, or its client, is not
 * read yet; after a restart nobody is. */
void ruled_anew(const struct sim_daemon *d)
{
	const struct request_sim *q;
	const struct conn *c;
	bool resumes;

	TAILQ_FOREACH(c, &d->world->conns, in_world)
	{
		if (service_returns(d->service) || c->daemon != d || c->run != d->run || c->going || c->taken || !c->daemon_open)
			continue;
		resumes = false;
		TAILQ_FOREACH(q, &c->running, at_daemon)
			resumes |= q->ask == ASK_RESUME;
		TAILQ_FOREACH(q, &c->running, at_daemon)
			if (!resumes && waits_denied(q))
				fail(q, "which the rules deny now, and waits on", SPAN(""));
	}
}
