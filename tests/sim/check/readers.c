/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that are held by readers together, or by a writer alone (S6); and the line of both (S19). */
#include "tests/sim/world/world.h"

#include <stdlib.h>

void check_reading(const struct sim_client *c, int64_t name)
{
	const struct reading *r = &c->reading[name];
	struct world *w = c->world;

	for (unsigned i = 0; i < w->plan->clients; i++) {
		const struct reading *other = &w->client[i].reading[name];

		if (i == c->index || r->until <= w->now || other->until <= w->now || (r->shared && other->shared))
			continue;
		checker_fail(w, INVARIANT_S6, -1, "r%lld: client %u believes in %s fence %lld until %lld us, client %u in %s fence %lld until %lld us",
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

/* Nobody is granted before an earlier waiter of the same daemon, whatever their modes. */
static void check_read_order(struct request_sim *q, int64_t name)
{
	struct world *w = q->conn->world;
	const struct request_sim *other;
	const struct conn *c;

	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		if (c->daemon != q->conn->daemon || c == q->conn || c->going || c->taken)
			continue;
		TAILQ_FOREACH(other, &c->running, at_daemon)
			if (other->ask == ASK_READ && other->locks && other->name == name && other->wait_ms != 0 && other->begun_step < q->begun_step)
				checker_fail(w, INVARIANT_S19, -1, "r%lld: daemon %u granted client %u before client %u, which asked earlier",
					     (long long)name, q->conn->daemon->index, q->conn->client->index, c->client->index);
	}
}

void readers_said(struct request_sim *q, struct span line)
{
	int64_t *count, said = line_int(line, "count");

	if (q->ask != ASK_READ || q->reads == READ_ALL || q->reads == READ_ANY || line_field(line, "fence").n == 0 || span_equal(line_word(line, 1), SPAN("*")))
		return;
	count = &q->conn->read_count[q->name];
	if (q->locks) {
		check_read_token(q->conn, q->name, line_int(line, "fence"), span_equal(line_field(line, "mode"), SPAN("shared")));
		if (*count == 0 && said == 1 && !resumed_is_behind(q))
			check_read_order(q, q->name);
	}
	if (said > 0)
		*count = said;
}

void readers_granted(struct request_sim *q, int64_t name, struct span line)
{
	check_read_token(q->conn, name, line_int(line, "fence"), span_equal(line_field(line, "mode"), SPAN("shared")));
	if (line_int(line, "count") == 1 && !resumed_is_behind(q) && q->priority == 0)
		check_read_order(q, name);
}

void readers_released(struct request_sim *q, struct span line)
{
	if (q->ask == ASK_READ && q->reads == READ_UNLOCK)
		q->conn->read_count[q->name] = line_int(line, "count") > 0 ? line_int(line, "count") : 0;
}

void readers_lost(struct conn *c, struct span line)
{
	int64_t name = reader_name(line);

	if (name >= 0 && span_equal(line_word(line, 1), SPAN("LOST")))
		c->read_count[name] = 0;
}
