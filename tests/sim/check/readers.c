/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that are held by readers together, or by a writer alone (S6): what clients believe, and what the lines of daemons say. See read_line.c. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

/* S9: what is not renewed ends no later than a ttl after the last answer to a request of its own, by the clock of its host. */
static void check_own_end(const struct sim_client *c, int64_t name)
{
	const struct reading *r = &c->reading[name];
	int64_t beyond_us = instant_diff(r->deadline, r->most);

	if (r->most.us != INSTANT_NEVER.us && !c->remote && beyond_us > MSEC)
		checker_fail(c->world, INVARIANT_S9, -1, "r%lld: fence %lld is not renewed, but client %u is promised %lld us more than it asked for",
			     (long long)name, (long long)r->fence, c->index, (long long)beyond_us);
}

/*
 * S13: a holder with a lock-delay has lost the name, or gone unsurely. Nobody is to have it before that is over. If its daemon dies before the keys are left
 * behind, the name is kept for no longer than the lease.
 */
void check_read_delay(const struct sim_client *c, int64_t name, struct span reason)
{
	const struct reading *r = &c->reading[name];
	struct read_tokens *t = &c->world->checker.read_tokens;
	int64_t until = r->until + r->delay_us * 98 / 100 - 2 * MSEC;

	if (r->delay_us == 0 || r->until <= 0 || r->shared || !(span_equal(reason, SPAN("expired")) || span_equal(reason, SPAN("quorum"))) ||
	    until < t->delayed_until[name])
		return;
	t->delayed_until[name] = until;
	t->delayed_by[name] = c->daemon;
	t->delayed_run[name] = c->daemon->run;
}

/* An UNLOCK keep= was answered OK. Where nothing is wrong the keys stay for that long, unless the lease is almost over. */
static void note_kept(const struct request_sim *q)
{
	const struct world *w = q->conn->world;
	const struct plan *p = w->plan;
	struct read_tokens *t = &q->conn->world->checker.read_tokens;

	if (q->keep_ms == 0 || p->faults > 0 || w->strange || p->service_us > 0 || p->window > 0 || q->relied_at_least < w->now + 200 * MSEC)
		return;
	t->delayed_until[q->name] = later(t->delayed_until[q->name], w->now + q->keep_ms * MSEC * 98 / 100 - 2 * MSEC);
	t->delayed_by[q->name] = q->conn->daemon;
	t->delayed_run[q->name] = q->conn->daemon->run;
}

static void check_delayed(const struct conn *c, int64_t name)
{
	const struct world *w = c->world;
	const struct read_tokens *t = &w->checker.read_tokens;

	if (w->class == CLASS_T && w->plan->breaks_ms == 0 && w->now < t->delayed_until[name] &&
	    t->delayed_run[name] == t->delayed_by[name]->run)
		checker_fail(c->world, INVARIANT_S13, -1, "r%lld: client %u has it before a lock-delay or keep= is over at %lld", (long long)name,
			     c->client->index, (long long)t->delayed_until[name]);
}

void check_reading(const struct sim_client *c, int64_t name)
{
	const struct reading *r = &c->reading[name];
	struct world *w = c->world;

	check_own_end(c, name);
	check_jobs_beside(c, name);
	for (unsigned i = 0; i < w->plan->clients; i++) {
		const struct reading *other = &w->client[i].reading[name];

		if (i == c->index || r->until <= w->now || other->until <= w->now || (r->shared && other->shared))
			continue;
		checker_fail(w, INVARIANT_S6, -1, "r%lld: client %u relies on %s fence %lld until %lld us, client %u in %s fence %lld until %lld us",
			     (long long)name, c->index, r->shared ? "shared" : "exclusive", (long long)r->fence, (long long)r->until, i,
			     other->shared ? "shared" : "exclusive", (long long)other->fence, (long long)other->until);
	}
}

static struct read_token *token_find(struct read_tokens *t, int64_t name, int64_t fence)
{
	for (size_t i = t->count; i-- > 0;)
		if (t->item[i].name == name && t->item[i].fence == fence)
			return &t->item[i];
	return NULL;
}

static void token_note(struct read_tokens *t, const struct read_token *token)
{
	if (t->count == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 256;
		t->item = realloc(t->item, t->cap * sizeof(*t->item));
		if (!t->item)
			abort();
	}
	t->item[t->count++] = *token;
}

/* A token of a writer is nobody else's. In T it is larger than all before, and that of a reader larger than those of all writers before. */
static void check_read_token(struct conn *c, int64_t name, int64_t fence, bool shared)
{
	struct world *w = c->world;
	struct read_tokens *t = &w->checker.read_tokens;
	const struct read_token *known = token_find(t, name, fence);
	int64_t least = shared ? t->exclusive[name] : t->largest[name];

	if (!w->tokens_are_safe)
		return;
	if (known && !(known->shared && shared) && known->client != c->client->index)
		checker_fail(w, INVARIANT_S6, -1, "r%lld: fence %lld is given to client %u, and was given to client %u", (long long)name, (long long)fence,
			     c->client->index, known->client);
	if (known)
		return;
	if (fence <= least && w->class == CLASS_T)
		checker_fail(w, INVARIANT_S6, -1, "r%lld: %s fence %lld comes after %lld", (long long)name, shared ? "shared" : "exclusive", (long long)fence,
			     (long long)least);
	token_note(t, &(struct read_token){.name = name, .fence = fence, .client = c->client->index, .shared = shared});
	t->largest[name] = later(t->largest[name], fence);
	if (!shared)
		t->exclusive[name] = later(t->exclusive[name], fence);
}

/* For the report: how often readers of several daemons had a name together. */
static void note_together(const struct request_sim *q)
{
	struct world *w = q->conn->world;

	for (unsigned i = 0; i < w->plan->clients; i++) {
		const struct sim_client *other = &w->client[i];

		if (other->conn && other->conn->daemon != q->conn->daemon && other->reading[q->name].shared && other->reading[q->name].until > w->now) {
			w->tally.together++;
			return;
		}
	}
}

/* It is about one name, and not about all of several or any of them. */
static bool is_about_one(const struct request_sim *q)
{
	return q->ask == ASK_READ && q->reads != READ_ALL && q->reads != READ_ANY;
}

void readers_said(struct request_sim *q, struct span line)
{
	int64_t *count, said = line_int(line, "count");

	if (!is_about_one(q) || line_field(line, "fence").n == 0 || span_equal(line_word(line, 1), SPAN("*")))
		return;
	count = &q->conn->read_count[q->name];
	if (q->locks) {
		bool shared = span_equal(line_field(line, "mode"), SPAN("shared"));

		check_read_token(q->conn, q->name, line_int(line, "fence"), shared);
		if (said == 1)
			check_delayed(q->conn, q->name);
		reader_is_alone(q->conn, q->name, !shared);
		q->begins = *count == 0 && said == 1 && !resumed_is_behind(q);
		if (q->begins) {
			check_read_order(q, q->name);
			if (shared) {
				check_read_turn(q);
				note_together(q);
			}
		}
	}
	if (said > 0)
		*count = said;
}

void readers_granted(struct request_sim *q, int64_t name, struct span line)
{
	bool shared = span_equal(line_field(line, "mode"), SPAN("shared"));

	check_read_token(q->conn, name, line_int(line, "fence"), shared);
	if (line_int(line, "count") == 1)
		check_delayed(q->conn, name);
	reader_is_alone(q->conn, name, !shared);
	if (line_int(line, "count") == 1 && !resumed_is_behind(q) && q->priority == 0)
		check_read_order(q, name);
}

/* Whoever waits since before the TAKE comes first. */
void readers_taken(struct request_sim *q, int64_t name, struct span line)
{
	check_read_token(q->conn, name, line_int(line, "fence"), false);
	check_delayed(q->conn, name);
	if (!resumed_is_behind(q))
		check_read_order(q, name);
}

void readers_released(struct request_sim *q, struct span line)
{
	if (q->ask != ASK_READ || q->reads != READ_UNLOCK)
		return;
	q->conn->read_count[q->name] = line_int(line, "count") > 0 ? line_int(line, "count") : 0;
	if (q->conn->read_count[q->name] == 0)
		note_kept(q);
	if (q->conn->read_count[q->name] == 0)
		reader_is_alone(q->conn, q->name, false);
}

/* Whether its session goes on, with what it holds and waits for, the lines do not say. */
void readers_conn_over(struct conn *c)
{
	for (int64_t name = 0; name < READ_NAMES; name++)
		c->client->reading[name].most = INSTANT_NEVER; /* an EXTEND may have been carried out, and RESUME not tell of it */
	line_conn_over(c);
}

static void read_is_lost(struct conn *c, int64_t name)
{
	c->read_count[name] = 0;
	reader_is_alone(c, name, false);
}

void readers_lost(struct conn *c, struct span line)
{
	int64_t name = reader_name(line);

	if (name >= 0 && span_equal(line_word(line, 1), SPAN("LOST")) && !is_of_job(line))
		read_is_lost(c, name);
}

/* The session was resumed without this hold: an answer tells of the loss, in the place of a push. */
void readers_refused(const struct request_sim *q, struct span code)
{
	if (is_about_one(q) && span_equal(code, SPAN("LOST")))
		read_is_lost(q->conn, q->name);
}
