/* SPDX-License-Identifier: BSD-2-Clause */
/* S5: what clients believe of the permits of one semaphore, and the tokens and the order in which they are granted. S13: what was promised of permits. */
#include "tests/sim/world/world.h"

static void check_pair(const struct sim_client *c, const struct seating *s, const struct sim_client *d, const struct seating *other)
{
	if (s->limit == other->limit && s->slot != other->slot)
		return;
	checker_fail(c->world, INVARIANT_S5, -1,
		     "p%lld: client %u relies on permit %lld of limit %lld until %lld us, client %u in %lld of limit %lld until %lld us",
		     (long long)s->name, c->index, (long long)s->slot, (long long)s->limit, (long long)s->until, d->index, (long long)other->slot,
		     (long long)other->limit, (long long)other->until);
}

void check_permit(const struct sim_client *c, const struct seating *s)
{
	struct world *w = c->world;
	int64_t permits = 0;

	if (s->until <= w->now)
		return; /* the reply was read late */
	for (unsigned i = 0; i < w->plan->clients; i++)
		for (unsigned k = 0; k < SEATINGS; k++) {
			const struct seating *other = &w->client[i].permits.has[k];

			if (!other->live || other->name != s->name || other->until <= w->now)
				continue;
			permits++;
			if (other != s)
				check_pair(c, s, &w->client[i], other);
		}
	if (permits > s->limit)
		checker_fail(w, INVARIANT_S5, -1, "p%lld: clients rely on %lld permits, and the limit is %lld", (long long)s->name, (long long)permits,
			     (long long)s->limit);
}

/* One that may repeat a request from before a RESUME stands where that stood. */
static bool places_are_known(const struct request_sim *q, const struct request_sim *other)
{
	return q->priority == other->priority && !resumed_is_behind(other);
}

/* A request that tries to find free slots stands in no line yet: that takes a second at most, and the rounds of that. */
static void check_permit_order(const struct request_sim *q)
{
	struct world *w = q->conn->world;
	int64_t slack = 2 * (SEC + 8 * w->plan->timeout_us);
	const struct request_sim *other;
	const struct conn *c;

	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		if (c->daemon != q->conn->daemon || c == q->conn || c->going || c->taken)
			continue;
		TAILQ_FOREACH(other, &c->running, at_daemon)
			if (other->ask == ASK_PERMIT && other->locks && other->name == q->name && places_are_known(q, other) && other->wait_ms != 0 &&
			    other->list_limit == q->list_limit && other->begun_at + slack < q->begun_at && !ruled_out(other))
				checker_fail(w, INVARIANT_S5, -1, "p%lld: daemon %u served client %u before client %u, which waits since %lld us",
					     (long long)q->name, c->daemon->index, q->conn->client->index, c->client->index, (long long)other->begun_at);
	}
}

/* A permit that was lost, or that its client was told to be at risk, is nobody else's before the end of what was promised. */
static void check_promised(struct request_sim *q, int64_t fence, int64_t slot)
{
	struct world *w = q->conn->world;

	for (unsigned i = 0; i < w->plan->clients; i++)
		for (unsigned k = 0; k < SEATINGS; k++) {
			const struct seating *s = &w->client[i].permits.has[k];

			if (s->promised <= w->now || s->name != q->name || (s->fence == fence && s->slot == slot))
				continue;
			if (s->limit == q->list_limit && s->slot != slot)
				continue;
			checker_fail(w, INVARIANT_S13, -1,
				     "p%lld: a permit of fence %lld and limit %lld is granted, but permit %lld of fence %lld and limit %lld was promised to "
				     "client %u until %lld us", (long long)q->name, (long long)fence, (long long)q->list_limit, (long long)s->slot,
				     (long long)s->fence, (long long)s->limit, i, (long long)s->promised);
		}
}

/* A row or a push tells the owner that asked for the permit. */
void check_permit_owner(const struct sim_client *c, const struct seating *s, struct span line)
{
	if (line_owner(line) != s->owner)
		checker_fail(c->world, INVARIANT_S5, -1,
		             "p%lld: permit %lld of fence %lld is one of owner %lld of client %u, and is told to be one of owner %lld",
			     (long long)s->name, (long long)s->slot, (long long)s->fence, (long long)s->owner, c->index, (long long)line_owner(line));
}

/* RELEASE says no fence in its answer, but was asked for this one. */
static void check_misowned(const struct request_sim *q, struct span line)
{
	if (line_field(line, "fence").n == 0 || line_int(line, "fence") == q->fence)
		checker_fail(q->conn->world, INVARIANT_S5, -1, "p%lld: client %u asks about fence %lld in the name of another owner, and is told OK: %.*s",
			     (long long)q->name, q->conn->client->index, (long long)q->fence, (int)line.n, line.p);
}

void permitted_said(struct request_sim *q, struct span line)
{
	struct world *w = q->conn->world;
	int64_t fence = line_int(line, "fence"), slot = line_int(line, "permit"), *last;

	if (q->ask == ASK_PERMIT && q->misowned)
		check_misowned(q, line);
	if (q->ask != ASK_PERMIT || !q->locks)
		return;
	w->tally.permits++;
	if (!resumed_is_behind(q)) /* else it may be a turn that came while its session had no connection */
		check_permit_order(q);
	check_promised(q, fence, slot);
	last = &w->checker.slot_fence[q->name][slot];
	if (fence <= *last && w->tokens_are_safe && w->class == CLASS_T)
		checker_fail(w, INVARIANT_S5, -1, "p%lld: fence %lld of slot %lld comes after %lld", (long long)q->name, (long long)fence, (long long)slot,
			     (long long)*last);
	*last = later(*last, fence);
}
