/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work: what a line says about a chore is true of its home (S32), and no two clients ever believe in one (S33). A home that lost its memory, or
 * returned to an earlier state, excuses what it forgot.
 */
#include "daemon/base/netstring.h"
#include "tests/sim/world/world.h"

#include <stdio.h>

static struct chore *chore_of(struct world *w, int64_t number)
{
	return number >= 0 ? &w->checker.chore[number] : NULL;
}

/* --- at the home ----------------------------------------------------------------------------------------------------- */

static bool chore_is_there(const struct server *s, int64_t number)
{
	char key[64], field[32];

	snprintf(key, sizeof(key), "j:w%lld", (long long)(number % CHORE_QUEUES));
	snprintf(field, sizeof(field), "hc%lld", (long long)number);
	return sim_node_has_field(s->node, span_of(key), span_of(field));
}

static uint64_t defer_nonce(struct span rest)
{
	static const uint64_t fixed[2] = {0, 0};
	struct span word = SPAN("");

	for (unsigned i = 0; i < 5; i++)
		(void)netstring_next(&rest, &word); /* payload lock delay_ms most, then the nonce */
	return siphash(fixed, word.p, word.n);
}

/* Another DEFER after the chore was done brings it back; another try of the same one does not. */
static void chore_stored(struct server *s, struct span rest)
{
	struct span id;
	struct chore *h;
	uint64_t nonce;

	if (!netstring_next(&rest, &id) || !(h = chore_of(s->world, chore_number(id))))
		return;
	nonce = defer_nonce(rest);
	h->excused |= s->ahead_us > 0;
	if (h->finished && !chore_is_there(s, chore_number(id)))
		return;
	if (h->finished && h->nonce == nonce && !h->excused)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u stores c%lld again, which was done, for a DEFER that it has carried out", s->index,
			     (long long)chore_number(id));
	h->stored = true;
	h->home = s->index;
	h->nonce = nonce;
	h->renewed |= h->finished && !h->told_done;
	h->finished = h->told_done = false;
}

static void chore_taken(struct server *s, const struct answer *a)
{
	struct span rest = a->found, id;
	struct chore *h;

	if (!span_starts(sim_node_marker(s->node), SPAN("j")))
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out a chore before it has joined", s->index);
	if (!netstring_next(&rest, &id) || !(h = chore_of(s->world, chore_number(id))))
		return;
	if (h->told_done && !h->excused)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out c%lld again, which was told to be done", s->index,
			     (long long)chore_number(id));
}

/* Which chore was done is seen by what is no longer there. */
static void chores_finished(struct server *s)
{
	struct world *w = s->world;

	for (int64_t i = 0; i < w->checker.chores; i++) {
		struct chore *h = &w->checker.chore[i];

		if (h->stored && !h->finished && h->home == s->index)
			h->finished = !chore_is_there(s, i);
	}
}

void chores_ran(struct server *s, const struct flight *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		struct span rest = f->call[i].value, op;

		if (f->call[i].kind != CALL_HOME || f->answer[i].class != ANSWER_EXECUTED || !span_starts(rest, SPAN("1:j")))
			continue;
		(void)netstring_next(&rest, &op);
		if (!netstring_next(&rest, &op))
			continue;
		if (span_equal(op, SPAN("defer")) && f->answer[i].code == 'D')
			chore_stored(s, rest);
		else if (span_equal(op, SPAN("take")) && f->answer[i].code == 'J')
			chore_taken(s, &f->answer[i]);
		else if (span_equal(op, SPAN("done")) && f->answer[i].code == 'R')
			chores_finished(s);
	}
}

/* The process of the home was killed as it carried out this call: the next one has done it, or has not begun. One call changes one chore. */
void chores_torn(struct server *s, const struct flight *f)
{
	struct checker *k = &s->world->checker;
	struct chore was[CHORES_MAX];

	memcpy(was, k->chore, sizeof(was));
	chores_ran(s, f);
	for (int64_t i = 0; i < k->chores; i++) {
		if (memcmp(&was[i], &k->chore[i], sizeof(was[i])) == 0)
			continue;
		k->torn = i + 1;
		k->torn_was = was[i];
	}
}

void chores_settle(struct server *s)
{
	struct checker *k = &s->world->checker;

	if (k->torn && chore_is_there(s, k->torn - 1) == k->chore[k->torn - 1].finished)
		k->chore[k->torn - 1] = k->torn_was;
	k->torn = 0;
}

void chores_lost(struct server *s)
{
	struct world *w = s->world;

	for (int64_t i = 0; i < w->checker.chores; i++)
		if (w->checker.chore[i].home == s->index)
			w->checker.chore[i].excused = true;
}

/* --- at the clients -------------------------------------------------------------------------------------------------- */

void chores_said(struct request_sim *q, struct span line, struct span word)
{
	struct world *w = q->conn->world;
	struct chore *h;

	(void)line;
	if (q->ask != ASK_CHORE || !span_equal(word, SPAN("OK")) || q->chore == CHORE_TAKE || q->chore == CHORE_CHECK)
		return;
	h = &w->checker.chore[q->name];
	if (q->chore == CHORE_DEFER && !h->stored && !h->excused)
		checker_fail(w, INVARIANT_S32, -1, "c%lld: DEFER is told OK, and no node has stored it", (long long)q->name);
	if (q->chore == CHORE_DEFER)
		h->acknowledged = true;
	if (q->chore != CHORE_DONE)
		return;
	if (!h->finished && !h->excused && !h->renewed)
		checker_fail(w, INVARIANT_S32, -1, "c%lld: DONE is told OK, and node %u still has it", (long long)q->name, h->home);
	h->told_done = h->finished;
	h->renewed = false;
}

/* A client begins to believe in its chore, or believes for longer. */
void check_chore(const struct sim_client *c)
{
	struct world *w = c->world;
	const struct chore *h = &w->checker.chore[c->work.chore];

	if (w->server[h->home].ahead_us > 0)
		return; /* leases of this home end early where its clock was set forward: see redlock-protocol(7) */
	for (unsigned i = 0; i < w->plan->clients; i++) {
		const struct work *other = &w->client[i].work;

		if (i != c->index && other->chore == c->work.chore && other->until > w->now && c->work.until > w->now)
			checker_fail(w, INVARIANT_S33, -1, "client %u believes in c%lld until %lld us, client %u until %lld us", c->index,
				     (long long)c->work.chore, (long long)c->work.until, i, (long long)other->until);
	}
}

/* All have left: what was acknowledged, and was not done, is at its home. */
void check_chores_left(struct world *w)
{
	for (int64_t i = 0; i < w->checker.chores; i++) {
		const struct chore *h = &w->checker.chore[i];

		if (h->acknowledged && !h->finished && !h->excused && !chore_is_there(&w->server[h->home], i))
			checker_fail(w, INVARIANT_S32, -1, "c%lld was acknowledged and not done, and node %u has lost it", (long long)i, h->home);
	}
}
