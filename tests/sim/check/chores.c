/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work: what a line says about a chore is true of its home (S32), and no two clients ever rely on one (S33). A home that lost its memory, or
 * returned to an earlier state, excuses what it forgot.
 */
#include "daemon/base/netstring.h"
#include "tests/sim/world/world.h"

#include <stdio.h>

#define PIECE 60 /* chores that a server tells in one piece, or a few more */

static struct chore *chore_of(struct world *w, int64_t number)
{
	return number >= 0 ? &w->checker.chore[number] : NULL;
}

static uint64_t chore_hash(struct span text)
{
	static const uint64_t fixed[2] = {0, 0};

	return siphash(fixed, text.p, text.n);
}

/* --- at the home ----------------------------------------------------------------------------------------------------- */

/* What the server keeps of it; "": of a memory store. False: nothing. */
static bool chore_row(const struct server *s, int64_t number, struct span *ret_row)
{
	char key[64], field[32];

	snprintf(key, sizeof(key), "j:w%lld", (long long)chore_queue(number));
	snprintf(field, sizeof(field), "hc%lld", (long long)number);
	return sim_node_field(s->node, span_of(key), span_of(field), ret_row);
}

static bool chore_is_there(const struct server *s, int64_t number)
{
	struct span row;

	return chore_row(s, number, &row);
}

static bool chore_is_dead(const struct server *s, int64_t number)
{
	long long due, failed, most = (long long)s->world->daemon[0].conf.limits.attempts;
	char value[8], text[64];
	struct span row;

	if (!chore_row(s, number, &row))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)row.n, row.p);
	return sscanf(text, "%lld %lld %2s", &due, &failed, value) == 3 && strcmp(value, "-") == 0 && failed >= most;
}

/* NULL: no server has stored any chore of its queue. */
static struct server *chore_home(struct world *w, int64_t number)
{
	unsigned home = w->checker.queue_home[chore_queue(number)];

	return home ? &w->server[home - 1] : NULL;
}

static uint64_t nonce_of(struct span rest)
{
	struct span word = SPAN("");

	for (unsigned i = 0; i < 5; i++)
		(void)netstring_next(&rest, &word); /* payload lock delay_ms most, then the nonce */
	return chore_hash(word);
}

/* Another DEFER after the chore was done brings it back; another try of the same one does not. */
static void chore_stored(struct server *s, struct span rest)
{
	struct world *w = s->world;
	struct span id;
	struct chore *h;
	int64_t number;

	if (!netstring_next(&rest, &id) || !(h = chore_of(w, number = chore_number(id))))
		return;
	h->again |= s->ahead_us > 0;
	h->stored = true;
	if (!chore_is_there(s, number))
		return; /* the same batch has removed it */
	if (!chore_home(w, number))
		w->checker.queue_home[chore_queue(number)] = 1 + s->index;
	if (chore_home(w, number) != s)
		checker_fail(w, INVARIANT_S32, -1, "node %u stores c%lld, and node %u its queue", s->index, (long long)number, chore_home(w, number)->index);
	if (h->finished && h->nonce == nonce_of(rest) && !h->again)
		checker_fail(w, INVARIANT_S32, -1, "node %u stores c%lld again, which was done, for a DEFER that it has carried out", s->index,
			     (long long)number);
	if (!h->at)
		h->changed_at = w->now;
	h->at = h->ever = true;
	h->finished = h->told_done = false;
	h->attempt = 0; /* it may have failed for good before */
	h->revived_at = w->now;
	h->nonce = nonce_of(rest);
}

/* It is handed out to a client. */
static void chore_given(const struct server *s, struct chore *h, int64_t number, int64_t attempt)
{
	if (h->told_done && !h->again)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out c%lld again, which was told to be done", s->index, (long long)number);
	if (attempt < h->attempt && !h->again && !h->missing)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out c%lld with attempt %lld, after attempt %lld", s->index, (long long)number,
		             (long long)attempt, (long long)h->attempt);
	if (attempt > (int64_t)s->world->daemon[0].conf.limits.attempts)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out c%lld with attempt %lld", s->index, (long long)number, (long long)attempt);
	h->attempt = attempt;
}

static void chore_taken(struct server *s, const struct answer *a)
{
	struct span rest = a->found, id;
	int64_t attempt = 0;
	struct chore *h;

	if (!span_starts(sim_node_marker(s->node), SPAN("j")))
		checker_fail(s->world, INVARIANT_S32, -1, "node %u hands out a chore before it has joined", s->index);
	if (!netstring_next(&rest, &id) || !(h = chore_of(s->world, chore_number(id))))
		return;
	(void)netstring_next_int(&rest, &attempt);
	chore_given(s, h, chore_number(id), attempt);
}

static void chore_ended(const struct server *s, struct chore *h, int64_t number)
{
	h->at = false;
	h->finished = true;
	h->changed_at = s->world->now;
	h->ends++;
	if (!h->asked_done)
		checker_fail(s->world, INVARIANT_S32, -1, "node %u has c%lld no more, and nobody asked for its DONE or DROP", s->index, (long long)number);
	h->told_done = h->oks > 0 && h->oks == h->ends;
}

/* Which chore was done is seen by what is no longer there. */
static void chores_finished(struct server *s)
{
	struct world *w = s->world;

	for (int64_t i = 0; i < w->checker.chores; i++)
		if (w->checker.chore[i].at && chore_home(w, i) == s && !chore_is_there(s, i))
			chore_ended(s, &w->checker.chore[i], i);
}

/* A client that may rely on a chore keeps it, whoever asks to remove it. */
static void chore_dropped(const struct server *s, struct span id)
{
	struct world *w = s->world;
	int64_t number = chore_number(id);
	struct chore *h = chore_of(w, number);

	if (!h)
		return;
	for (unsigned i = 0; i < w->plan->clients; i++)
		if (w->client[i].work.chore == number && w->client[i].work.until > w->now && s->ahead_us <= 0)
			checker_fail(w, INVARIANT_S33, -1, "node %u removes c%lld, in which client %u believes until %lld us", s->index, (long long)number, i,
				     (long long)w->client[i].work.until);
	chore_ended(s, h, number);
}

static void chore_revived(struct server *s, struct span id)
{
	struct chore *h = chore_of(s->world, chore_number(id));

	if (!h)
		return;
	h->attempt = 0;
	h->revived_at = s->world->now;
}

static void chores_answered(struct server *s, struct span op, struct span rest, const struct answer *a)
{
	struct span word;

	if (span_equal(op, SPAN("defer")) && a->code == 'D')
		chore_stored(s, rest);
	else if (!netstring_next(&rest, &word))
		return;
	else if (span_equal(op, SPAN("take")) && a->code == 'J')
		chore_taken(s, a);
	else if (span_equal(op, SPAN("done")) && a->code == 'R')
		chores_finished(s);
	else if (span_equal(op, SPAN("drop")) && a->code == 'R')
		chore_dropped(s, word);
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
			chores_answered(s, op, rest, &f->answer[i]);
	}
}

void chores_written(struct server *s, bool passes)
{
	struct checker *k = &s->world->checker;

	k->chores_pass = passes && s->world->plan->chores;
	if (!k->chores_pass)
		return;
	memcpy(k->chore_was, k->chore, sizeof(k->chore));
	memcpy(k->queue_home_was, k->queue_home, sizeof(k->queue_home));
}

void chores_undone(struct server *s)
{
	struct checker *k = &s->world->checker;

	if (!k->chores_pass)
		return;
	memcpy(k->chore, k->chore_was, sizeof(k->chore));
	memcpy(k->queue_home, k->queue_home_was, sizeof(k->queue_home));
	k->chores_pass = false;
}

/* What it had done with may be there again. */
void chores_lost(struct server *s)
{
	struct world *w = s->world;

	for (int64_t i = 0; i < w->checker.chores; i++) {
		struct chore *h = &w->checker.chore[i];

		if (!h->ever || chore_home(w, i) != s)
			continue;
		h->missing |= h->at;
		h->again = true;
		h->at = chore_is_there(s, i);
	}
}

/* --- at the clients -------------------------------------------------------------------------------------------------- */

void chores_begun(struct request_sim *q)
{
	struct world *w = q->conn->world;
	const struct server *home;

	if (q->ask != ASK_CHORE)
		return;
	home = chore_home(w, q->name);
	if (q->chore == CHORE_DONE || q->chore == CHORE_DROP)
		w->checker.chore[q->name].asked_done = true;
	if (q->chore == CHORE_REVIVE)
		q->was_dead = home && chore_is_dead(home, q->name);
}

void chores_row(struct request_sim *q, struct span line)
{
	int64_t chore = chore_number(line_field(line, "job"));

	if (q->ask == ASK_CHORE && q->chore == CHORE_JOBS && chore >= 0)
		q->chores[chore / 8] |= (unsigned char)(1u << chore % 8);
}

/* What was at the home all the time. */
static void chores_listed(const struct request_sim *q, struct span line)
{
	struct world *w = q->conn->world;

	if (line_int(line, "after") >= 0 || line_int(line, "n") > PIECE)
		return;
	for (int64_t i = 0; i < w->checker.chores; i++) {
		const struct chore *h = &w->checker.chore[i];

		if (chore_queue(i) != chore_queue(q->name) || !h->at || h->changed_at >= q->begun_at || h->missing || h->again)
			continue;
		if (!(q->chores[i / 8] >> i % 8 & 1))
			checker_fail(w, INVARIANT_S32, -1, "LIST jobs of daemon %u, begun at %lld us, leaves out c%lld", q->conn->daemon->index,
			             (long long)q->begun_at, (long long)i);
	}
}

static void chore_not_found(const struct request_sim *q)
{
	struct world *w = q->conn->world;
	const struct chore *h = &w->checker.chore[q->name];

	if (q->was_dead && h->revived_at < q->begun_at && h->changed_at < q->begun_at && !h->again && chore_is_dead(chore_home(w, q->name), q->name))
		checker_fail(w, INVARIANT_S32, -1, "c%lld: RETRY is told NOTFOUND, and it has failed for good", (long long)q->name);
}

static void done_said(struct world *w, const struct request_sim *q)
{
	struct chore *h = &w->checker.chore[q->name];

	h->oks++;
	if (h->oks > h->ends && !h->missing && !h->again)
		checker_fail(w, INVARIANT_S32, -1, "c%lld: DONE or DROP is told OK, and no node has carried it out", (long long)q->name);
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
	} else if ((q->chore == CHORE_DONE || q->chore == CHORE_DROP) && ok) {
		done_said(w, q);
	} else if (q->chore == CHORE_JOBS && ok) {
		chores_listed(q, line);
	} else if (q->chore == CHORE_REVIVE && span_equal(word, SPAN("ERR")) && span_equal(line_word(line, 2), SPAN("NOTFOUND"))) {
		chore_not_found(q);
	}
}

/* Leases end early where the clock was set forward: see redlock-protocol(7). */
static bool chore_is_excused(struct world *w, int64_t chore)
{
	const struct server *home = chore_home(w, chore);

	return home && home->ahead_us > 0;
}

/* A client begins to rely on its chore, or believes for longer. */
void check_chore(const struct sim_client *c)
{
	struct world *w = c->world;

	if (chore_is_excused(w, c->work.chore))
		return;
	for (unsigned i = 0; i < w->plan->clients; i++) {
		const struct work *other = &w->client[i].work;

		if (i != c->index && other->chore == c->work.chore && other->until > w->now && c->work.until > w->now)
			checker_fail(w, INVARIANT_S33, -1, "client %u relies on c%lld until %lld us, client %u until %lld us", c->index,
				     (long long)c->work.chore, (long long)c->work.until, i, (long long)other->until);
	}
}

/* All have left: what was acknowledged, and was not done, is at its home. */
void check_chores_left(struct world *w)
{
	for (int64_t i = 0; i < w->checker.chores; i++) {
		const struct chore *h = &w->checker.chore[i];

		if (h->at && h->acknowledged && !h->missing && !chore_is_there(chore_home(w, i), i))
			checker_fail(w, INVARIANT_S32, -1, "c%lld was acknowledged and not done, and node %u has lost it", (long long)i,
			             chore_home(w, i)->index);
	}
}
