/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work: what a line says about a chore is true of its home (S32), and no two clients ever believe in one (S33). A home that lost its memory, or
 * returned to an earlier state, excuses what it forgot. chores_moved.c has what concerns several homes.
 */
#include "daemon/base/netstring.h"
#include "tests/sim/world/world.h"

#include <stdio.h>

static struct chore *chore_of(struct world *w, int64_t number)
{
	return number >= 0 ? &w->checker.chore[number] : NULL;
}

uint64_t chore_hash(struct span text)
{
	static const uint64_t fixed[2] = {0, 0};

	return siphash(fixed, text.p, text.n);
}

/* --- at the home ----------------------------------------------------------------------------------------------------- */

bool chore_is_there(const struct server *s, int64_t number)
{
	char key[64], field[32];

	snprintf(key, sizeof(key), "j:w%lld", (long long)chore_queue(s->world->plan, number));
	snprintf(field, sizeof(field), "hc%lld", (long long)number);
	return sim_node_has_field(s->node, span_of(key), span_of(field));
}

static bool chore_has_place(const struct chore *h, const struct server *s)
{
	return h->at >> s->index & 1;
}

/* Only a daemon that moves it names a place in the order. */
struct deferral {
	uint64_t nonce;
	bool moves;
	int64_t due_ms;
};

static struct deferral deferral_of(struct span rest)
{
	struct span word = SPAN("");
	struct deferral d = {0};
	int64_t not_after_ms;

	for (unsigned i = 0; i < 5; i++)
		(void)netstring_next(&rest, &word); /* payload lock delay_ms most, then the nonce */
	d.nonce = chore_hash(word);
	(void)netstring_next_int(&rest, &not_after_ms);
	for (unsigned i = 0; i < 4; i++)
		(void)netstring_next(&rest, &word); /* peer all_most peer_most keep_ms */
	d.moves = rest.n > 0;
	if (d.moves && !netstring_next_int(&rest, &d.due_ms))
		d.due_ms = INT64_MAX / SEC; /* no moment at all */
	return d;
}

/* The server has it, and had it not before. */
static void chore_comes(struct server *s, struct chore *h, const struct deferral *d)
{
	if (!d->moves) {
		h->twin |= h->at != 0;
		h->attempt = 0;
	}
	h->at |= (uint16_t)(1u << s->index);
	h->ever |= h->at;
	h->changed_at = s->world->now;
	h->finished = h->told_done = false;
}

/* Another DEFER after the chore was done brings it back; another try of the same one does not. */
static void chore_stored(struct server *s, const struct flight *f, struct span rest)
{
	struct span id;
	struct chore *h;
	struct deferral d;
	int64_t number;

	if (!netstring_next(&rest, &id) || !(h = chore_of(s->world, number = chore_number(id))))
		return;
	d = deferral_of(rest);
	h->again |= s->ahead_us > 0;
	if (!chore_is_there(s, number))
		return;
	if (s->index != chore_home(s->world, number, f->strange))
		checker_fail(s->world, INVARIANT_S32, -1, "daemon %u stores c%lld at node %u, which is not its home", f->daemon->index, (long long)number,
		             s->index);
	if (h->finished && h->nonce == d.nonce && !h->again)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u stores c%lld again, which was done, for a DEFER that it has carried out", s->index,
			     (long long)number);
	if (!chore_has_place(h, s))
		chore_comes(s, h, &d);
	else if (!d.moves)
		h->attempt = 0; /* it may have failed for good before */
	if (d.moves)
		chore_move_stored(s, number, d.nonce, d.due_ms);
	else
		h->revived_at = s->world->now;
	h->stored = true;
	h->nonce = d.nonce;
}

/* It is handed out to a client. */
static void chore_given(const struct server *s, struct chore *h, int64_t number, int64_t attempt)
{
	if (h->told_done && !h->again)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out c%lld again, which was told to be done", s->index, (long long)number);
	if (attempt < h->attempt && !h->again && !h->missing && !h->twin)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out c%lld with attempt %lld, after attempt %lld", s->index, (long long)number,
		             (long long)attempt, (long long)h->attempt);
	if (attempt > (int64_t)s->world->daemon[0].conf.limits.attempts)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out c%lld with attempt %lld", s->index, (long long)number, (long long)attempt);
	h->attempt = attempt;
}

static void chore_taken(struct server *s, const struct flight *f, struct span value, const struct answer *a)
{
	struct span rest = a->found, id, word;
	int64_t attempt = 0, due_ms = 0;
	struct chore *h;

	if (!span_starts(sim_node_marker(s->node), SPAN("j")))
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out a chore before it has joined", s->index);
	if (!netstring_next(&rest, &id) || !(h = chore_of(s->world, chore_number(id))))
		return;
	(void)netstring_next_int(&rest, &attempt);
	(void)netstring_next(&rest, &word);
	(void)netstring_next(&rest, &word);
	(void)netstring_next_int(&rest, &due_ms);
	if (s->index == chore_home(s->world, chore_number(id), f->strange))
		chore_given(s, h, chore_number(id), attempt);
	else
		chore_move_begun(s, chore_number(id), value, due_ms);
}

static void chore_ended(const struct server *s, struct chore *h, int64_t number, struct span value)
{
	h->at &= (uint16_t)~(1u << s->index);
	h->changed_at = s->world->now;
	h->finished = h->at == 0;
	if (!chore_move_ended(s, number, value)) {
		h->ends++;
		if (!h->asked_done)
			checker_fail(s->world, INVARIANT_S32, -1, "node %u has c%lld no more, and nobody asked for its DONE", s->index, (long long)number);
	}
	h->told_done = h->finished && h->oks > 0 && h->oks == h->ends;
}

/* Which chore was done is seen by what is no longer there. */
static void chores_finished(struct server *s, struct span value)
{
	struct world *w = s->world;

	for (int64_t i = 0; i < w->checker.chores; i++)
		if (chore_has_place(&w->checker.chore[i], s) && !chore_is_there(s, i))
			chore_ended(s, &w->checker.chore[i], i, value);
}

static void chore_revived(struct server *s, struct span id)
{
	struct chore *h = chore_of(s->world, chore_number(id));

	if (!h)
		return;
	h->attempt = 0;
	h->revived_at = s->world->now;
}

static void chores_answered(struct server *s, const struct flight *f, struct span op, struct span rest, const struct answer *a)
{
	struct span word;

	if (span_equal(op, SPAN("defer")) && a->code == 'D')
		chore_stored(s, f, rest);
	else if (!netstring_next(&rest, &word))
		return;
	else if (span_equal(op, SPAN("take")) && a->code == 'J')
		chore_taken(s, f, word, a);
	else if (span_equal(op, SPAN("done")) && a->code == 'R')
		chores_finished(s, word);
	else if (span_equal(op, SPAN("back")) && a->code == 'R')
		chore_given_back(s, word);
	else if (span_equal(op, SPAN("revive")) && a->code == 'R')
		chore_revived(s, word);
}

void chores_ran(struct server *s, const struct flight *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		struct span rest = f->call[i].value, op;

		if (f->call[i].kind != CALL_HOME || f->answer[i].class != ANSWER_EXECUTED || !span_starts(rest, SPAN("1:j")))
			continue;
		(void)netstring_next(&rest, &op);
		if (netstring_next(&rest, &op))
			chores_answered(s, f, op, rest, &f->answer[i]);
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

/* What it had done with may be there again. */
void chores_lost(struct server *s)
{
	struct world *w = s->world;
	uint16_t bit = (uint16_t)(1u << s->index);

	for (int64_t i = 0; i < w->checker.chores; i++) {
		struct chore *h = &w->checker.chore[i];

		h->missing |= h->at & bit;
		h->again |= (h->ever & bit) != 0;
		if (h->ever & bit)
			h->at = chore_is_there(s, i) ? h->at | bit : h->at & (uint16_t)~bit;
	}
}

/* --- at the clients -------------------------------------------------------------------------------------------------- */

static void done_said(struct world *w, const struct request_sim *q)
{
	struct chore *h = &w->checker.chore[q->name];

	h->oks++;
	if (h->oks > h->ends && !h->missing && !h->again)
		checker_fail(w, INVARIANT_S32, -1, "c%lld: DONE is told OK, and no node has carried it out", (long long)q->name);
	h->told_done = h->finished && h->oks == h->ends;
}

void chores_said(struct request_sim *q, struct span line, struct span word)
{
	struct world *w = q->conn->world;
	bool ok = span_equal(word, SPAN("OK"));
	struct chore *h;

	if (q->ask != ASK_CHORE)
		return;
	h = &w->checker.chore[q->name];
	if (q->chore == CHORE_DEFER && ok) {
		h->acknowledged = true;
		if (!h->stored && !h->missing)
			checker_fail(w, INVARIANT_S32, -1, "c%lld: DEFER is told OK, and no node has stored it", (long long)q->name);
	} else if (q->chore == CHORE_DONE && ok) {
		done_said(w, q);
	} else if (q->chore == CHORE_JOBS && ok) {
		chores_listed(q, line);
	} else if (q->chore == CHORE_LIST && ok && line_int(line, "missing") <= 0) {
		q->conn->daemon->looked_at = w->now;
	} else if (q->chore == CHORE_REVIVE && span_equal(word, SPAN("ERR")) && span_equal(line_word(line, 2), SPAN("NOTFOUND"))) {
		chore_not_found(q);
	}
}

/* Leases end early where the clock was set forward: see redlock-protocol(7). */
static bool chore_is_excused(const struct world *w, const struct chore *h)
{
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (h->ever >> i & 1 && w->server[i].ahead_us > 0)
			return true;
	return h->twin;
}

/* A client begins to believe in its chore, or believes for longer. */
void check_chore(const struct sim_client *c)
{
	struct world *w = c->world;

	if (chore_is_excused(w, &w->checker.chore[c->work.chore]))
		return;
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

		for (unsigned k = 0; k < w->plan->nodes; k++)
			if (h->at >> k & 1 && h->acknowledged && !h->missing && !chore_is_there(&w->server[k], i))
				checker_fail(w, INVARIANT_S32, -1, "c%lld was acknowledged and not done, and node %u has lost it", (long long)i, k);
	}
}
