/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients believe and what is granted: exclusion (S1), tokens (S2, S3), order (S19), promises (S13). */
#include "tests/sim/world/world.h"

#include <stdlib.h>

/* --- beliefs --------------------------------------------------------------------------------------------------------- */

static void check_pair(struct world *w, const struct hold *h, const struct hold *other)
{
	if (other->until > w->now && h->until > w->now)
		checker_fail(w, INVARIANT_S1, h->name,
			     "%s: client %u relies on fence %lld until %lld us, client %u in fence %lld until %lld us",
			     name_of(h->name), h->client->index, (long long)h->fence, (long long)h->until, other->client->index,
			     (long long)other->fence, (long long)other->until);
}

/* The client begins to rely on h, or believes for longer. */
void check_belief(struct world *w, const struct hold *h)
{
	const struct hold *other;

	TAILQ_FOREACH(other, &w->holds, in_world)
	{
		if (other != h && other->name == h->name && other->fence != h->fence)
			check_pair(w, h, other);
	}
}

/* --- tokens ---------------------------------------------------------------------------------------------------------- */

static bool token_add(struct token_set *set, uint64_t token);

static void tokens_grow(struct token_set *set)
{
	struct token_set old = *set;

	set->cap = old.cap ? 2 * old.cap : 256;
	set->count = 0;
	set->slot = calloc(set->cap, sizeof(*set->slot));
	if (!set->slot)
		abort();
	for (size_t i = 0; i < old.cap; i++)
		if (old.slot[i])
			token_add(set, old.slot[i]);
	free(old.slot);
}

/* False: it was in the set already. */
static bool token_add(struct token_set *set, uint64_t token)
{
	size_t at;

	if (2 * set->count >= set->cap)
		tokens_grow(set);
	for (at = mix(token, 0) & (set->cap - 1); set->slot[at]; at = (at + 1) & (set->cap - 1))
		if (set->slot[at] == token)
			return false;
	set->slot[at] = token;
	set->count++;
	return true;
}

static void check_token(struct world *w, const struct lease *l, int64_t name, int64_t fence)
{
	int64_t *returned = &w->checker.returned[name];

	if (!w->tokens_are_safe)
		return;
	if (fence <= 0 || fence >= INT64_C(1) << 53)
		checker_fail(w, INVARIANT_S2, name, "%s: fence %lld is out of range", name_of(name), (long long)fence);
	if (!token_add(&w->checker.tokens, (uint64_t)fence << 3 | (uint64_t)name))
		checker_fail(w, INVARIANT_S2, name, "%s: fence %lld was granted twice", name_of(name), (long long)fence);
	if (fence <= l->floor)
		checker_fail(w, INVARIANT_S3, name,
			     "%s: fence %lld was granted, but %lld was returned before its first command was sent", name_of(name),
			     (long long)fence, (long long)l->floor);
	if (fence <= *returned && w->class == CLASS_T)
		checker_fail(w, INVARIANT_S3, name, "%s: fence %lld was granted after %lld", name_of(name), (long long)fence,
			     (long long)*returned);
	if (fence > *returned)
		*returned = fence;
}

/* A token lies in the range that a quorum of nodes reserved for the lease before its first grant; a range is never extended. */
static void check_reserved(struct world *w, struct sim_daemon *d, int64_t name, int64_t fence)
{
	const struct lease *l = &w->checker.lease[d->index][name];
	unsigned nodes = 0;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		nodes += l->base[i] > 0 && l->base[i] <= fence && fence <= l->reach[i];
	if (2 * nodes <= d->conf.nodes)
		checker_fail(w, INVARIANT_S2, name, "%s: daemon %u grants fence %lld, which only %u nodes reserved for it",
			     name_of(name), d->index, (long long)fence, nodes);
}

/* Each level of priority counts as a minute of waiting. A request is read in the step after the one in which it began. */
bool stands_behind(const struct world *w, const struct request_sim *q, const struct request_sim *other)
{
	int64_t levels_us = (q->priority - other->priority) * 60 * SEC, earlier_us = q->begun_at - other->begun_at;

	if ((q->priority > 0 || other->priority > 0) && resumed_is_behind(other))
		return false; /* a repeated LOCK keeps its old place, whatever priority it has now */
	if (levels_us == 0)
		return other->begun_step < q->begun_step;
	if (levels_us < 0)
		return other->begun_step + 1 < w->checker.step && earlier_us + earlier_us / 50 > levels_us + SEC;
	return earlier_us - earlier_us / 50 > levels_us + SEC;
}

/* S19: nobody is granted before an earlier waiter of the same daemon, or one of a higher priority. */
static void check_order(struct world *w, struct sim_daemon *d, const struct request_sim *q)
{
	const struct request_sim *other;

	if (resumed_is_behind(q))
		return; /* a repeated LOCK keeps its old place */
	TAILQ_FOREACH(other, &w->checker.waiters[d->index][q->name], in_waiters)
	{
		bool same = other->conn == q->conn && other->owner == q->owner;

		if (other->wait_ms != 0 && !other->conn->going && !other->conn->taken && !same && stands_behind(w, q, other) && !running_awaits(other) &&
		    !ruled_out(other))
			checker_fail(w, INVARIANT_S19, q->name,
				     "%s: daemon %u granted client %u before client %u, which asked earlier or has a higher priority", name_of(q->name),
				     d->index, q->conn->client->index, other->conn->client->index);
	}
}

static int64_t delay_end(const struct world *w, int64_t name, int64_t fence, int64_t from)
{
	return from + delay_of_grant(w, name, fence) * 98 / 100 - 2 * MSEC;
}

void checker_delay(struct world *w, int64_t name, int64_t fence, int64_t from)
{
	int64_t until = delay_end(w, name, fence, from);

	if (delay_of_grant(w, name, fence) == 0 || fence < w->checker.delayed[name].fence)
		return;
	if (fence > w->checker.delayed[name].fence || until > w->checker.delayed[name].until)
		w->checker.delayed[name].until = until;
	w->checker.delayed[name].fence = fence;
}

/* Only in a healed world, where the command reaches the stores in time, and unless the lease is almost over. */
void checker_keep(struct world *w, const struct request_sim *q, int64_t fence)
{
	const struct sim_daemon *d = q->conn->daemon;
	int64_t left = instant_diff(recount_deadline(d, &w->checker.lease[d->index][q->name]), daemon_boot(d));

	if (w->stage != STAGE_SETTLED || w->flaps || left < 200 * MSEC || fence < w->checker.delayed[q->name].fence)
		return;
	w->checker.delayed[q->name].fence = fence;
	w->checker.delayed[q->name].until = w->now + q->keep_ms * MSEC * 98 / 100 - 2 * MSEC;
}

void checker_delay_from(struct world *w, int64_t name, int64_t fence, int64_t latest)
{
	if (w->checker.delayed[name].fence == fence && w->checker.delayed[name].until > delay_end(w, name, fence, latest))
		w->checker.delayed[name].until = delay_end(w, name, fence, latest);
}

void checker_undelay(struct world *w, int64_t name, int64_t fence)
{
	if (w->checker.delayed[name].fence == fence)
		w->checker.delayed[name].until = 0;
}

void checker_undelay_all(struct world *w)
{
	for (int64_t name = 0; name < NAMES_MAX; name++)
		w->checker.delayed[name].until = 0;
	for (unsigned i = 0; i < READ_NAMES; i++)
		w->checker.read_tokens.delayed_until[i] = 0;
}

/* S13: a grant breaks no promise that still runs. */
static void check_promises(struct world *w, int64_t name, int64_t fence)
{
	const struct hold *other;

	if (w->checker.delayed[name].fence != fence && w->checker.delayed[name].until > w->now)
		checker_fail(w, INVARIANT_S13, name, "%s: fence %lld is granted, but the lock-delay or keep= of fence %lld lasts until %lld us",
			     name_of(name), (long long)fence, (long long)w->checker.delayed[name].fence,
			     (long long)w->checker.delayed[name].until);
	TAILQ_FOREACH(other, &w->holds, in_world)
	{
		if (other->name == name && other->fence != fence && other->promised > w->now)
			checker_fail(w, INVARIANT_S13, name,
				     "%s: fence %lld is granted, but fence %lld was promised to client %u until %lld us",
				     name_of(name), (long long)fence, (long long)other->fence, other->client->index,
				     (long long)other->promised);
	}
}

/* S9: a lease that is so short that its loss would be pushed at once is not granted. */
static void check_worth(struct world *w, struct sim_daemon *d, int64_t name, const struct lease *l)
{
	int64_t left = instant_diff(recount_deadline(d, l), daemon_boot(d)), lead = l->least_us / 20;

	lead = lead < 5 * MSEC ? 5 * MSEC : lead > 250 * MSEC ? 250 * MSEC : lead;
	if (left < lead + l->least_us / 10 - MSEC)
		checker_fail(w, INVARIANT_S9, name, "%s: daemon %u grants a lease of %lld us of which only %lld us are left", name_of(name), d->index,
			     (long long)l->least_us, (long long)left);
}

void check_grant(struct world *w, struct sim_daemon *d, struct request_sim *q, int64_t fence)
{
	struct lease *l = &w->checker.lease[d->index][q->name];

	delay_granted(w, q->name, fence, l->delay_us);
	check_token(w, l, q->name, fence);
	if (!l->adopted || !resumed_is_behind(q)) /* else it was granted in a previous run */
		check_reserved(w, d, q->name, fence);
	if (l->grants++ > 0 && !l->unseen)
		handover_granted(d, l, q, recount_deadline(d, l));
	else if (!l->unseen && !l->adopted && !resumed_is_behind(q))
		check_worth(w, d, q->name, l);
	if (l->grants == 1)
		tickets_won(d, q->name);
	check_order(w, d, q);
	check_promises(w, q->name, fence);
	if (l->held && !l->conn->going)
		checker_fail(w, INVARIANT_S1, q->name, "%s: daemon %u granted what its client %u holds", name_of(q->name), d->index,
			     l->conn->client->index);
	if (recount_is_released(d, l->serial))
		checker_fail(w, INVARIANT_S11, q->name, "%s: daemon %u granted with a value that it had released", name_of(q->name),
			     d->index);
	notice_granted(q, l, fence);
	l->held = true;
	l->conn = q->conn;
	l->owner = q->owner;
	l->fence = fence;
	w->checker.unlocked[q->name] = false; /* it may become free without an UNLOCK */
	w->tally.grants++;
}

void check_turn(struct world *w, struct sim_daemon *d, int64_t name, int64_t fence)
{
	struct lease *l = &w->checker.lease[d->index][name];

	delay_granted(w, name, fence, l->delay_us);
	check_token(w, l, name, fence);
	if (!l->adopted)
		check_reserved(w, d, name, fence);
	check_promises(w, name, fence);
	w->checker.unlocked[name] = false;
	l->grants++;
	w->tally.grants++;
}

void check_resumed(struct conn *c, int64_t name, int64_t owner, int64_t fence)
{
	struct lease *l = &c->world->checker.lease[c->daemon->index][name];
	bool granted_before = l->held && l->conn == c && l->owner == owner && l->fence == fence; /* granted to a tagged request that came behind the RESUME */

	if (l->held && !l->conn->going && !granted_before)
		checker_fail(c->world, INVARIANT_S1, name, "%s: client %u resumes what client %u holds", name_of(name), c->client->index,
			     l->conn->client->index);
	delay_granted(c->world, name, fence, l->delay_us);
	l->risked |= !granted_before; /* the notices that the previous connection got are not repeated */
	l->held = true;
	l->conn = c;
	l->owner = owner;
	l->fence = fence;
}
