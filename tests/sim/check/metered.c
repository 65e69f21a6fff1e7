/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limits (S31). The store's log is what it admitted, and when, by its own clock: no window of it has more than the limit, and nobody is refused whose cost
 * was left. A store that lost its memory begins anew. What lies ahead of a clock that was set back counts as of now. All daemons ask the same
 * store, as long as they may ask no other, and tell OK only of what a store has admitted.
 */
#include "daemon/base/netstring.h"
#include "tests/sim/world/world.h"

#include <stdlib.h>

#define SLACK_US MSEC /* what was consumed in one millisecond counts as of its last use */

void metered_release(struct server *s)
{
	free(s->metered.use);
	s->metered.use = NULL;
}

void metered_lost(struct server *s)
{
	s->metered.uses = 0;
	s->metered.restored = true;
}

static void metered_add(struct metered *m, int64_t name, int64_t at, int64_t cost)
{
	if (m->uses == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 64;
		m->use = realloc(m->use, m->cap * sizeof(*m->use));
		if (!m->use)
			abort();
	}
	m->use[m->uses++] = (struct metered_use){.name = name, .at = at, .cost = cost};
}

/* Forgets what has left its window by the clock of the store, and pulls back what lies ahead. */
void metered_settle(struct server *s)
{
	struct metered *m = &s->metered;
	int64_t now = server_wall(s);
	unsigned left = 0;

	for (unsigned i = 0; i < m->uses; i++) {
		struct metered_use use = m->use[i];

		if (use.at + rate_terms(s->world->plan, use.name).per_ms * MSEC + SLACK_US <= now)
			continue;
		use.past |= use.at + rate_terms(s->world->plan, use.name).per_ms * MSEC <= now;
		if (use.at > now && !use.past)
			use.at = now;
		m->use[left++] = use;
	}
	m->uses = left;
}

static int64_t metered_used(const struct metered *m, int64_t name, int64_t since, bool past)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < m->uses; i++)
		sum += m->use[i].name == name && m->use[i].at > since && (past || !m->use[i].past) ? m->use[i].cost : 0;
	return sum;
}

static int64_t cost_of(const struct call *c)
{
	struct span rest = c->value, word;
	int64_t cost = 0;

	for (unsigned i = 0; i < 3; i++)
		if (!netstring_next(&rest, &word))
			return 0;
	return netstring_next_int(&rest, &cost) ? cost : 0;
}

/* Only where another store is asked when the home is lost may a second one count. */
static void home_check(struct server *s, int64_t name)
{
	struct world *w = s->world;
	unsigned *home = &w->checker.home[name];

	if (*home == 0)
		*home = s->index + 1;
	if (*home != s->index + 1 && w->plan->rates != RATES_NEXT)
		checker_fail(w, INVARIANT_S31, -1, "m%lld is counted at node %u, and was at node %u before", (long long)name, s->index, *home - 1);
}

static void judged(struct server *s, const struct flight *f, unsigned i, int64_t name)
{
	struct world *w = s->world;
	struct rate_terms x = rate_terms(w->plan, name);
	int64_t now = server_wall(s), cost = cost_of(&f->call[i]);
	int64_t used = metered_used(&s->metered, name, now - x.per_ms * MSEC, false);
	int64_t longer = metered_used(&s->metered, name, now - x.per_ms * MSEC - SLACK_US, true);
	bool admitted = f->answer[i].code == 'Y';

	home_check(s, name);
	if (admitted && used + cost > x.limit)
		checker_fail(w, INVARIANT_S31, -1, "m%lld: %lld more were admitted after %lld in %lld ms, the limit is %lld", (long long)name, (long long)cost,
			     (long long)used, (long long)x.per_ms, (long long)x.limit);
	if (!admitted && longer + cost <= x.limit && s->stepped_us == 0 && !s->metered.restored)
		checker_fail(w, INVARIANT_S31, -1, "m%lld: %lld were refused though only %lld of %lld were used in %lld ms", (long long)name, (long long)cost,
			     (long long)longer, (long long)x.limit, (long long)x.per_ms);
	if (!admitted)
		return;
	metered_add(&s->metered, name, now, cost);
	w->checker.admitted[f->daemon->index][name]++;
}

void metered_ran(struct server *s, const struct flight *f)
{
	if (s->metered.uses > 0)
		metered_settle(s);
	for (unsigned i = 0; i < f->count; i++) {
		int64_t name = f->call[i].kind == CALL_HOME ? rate_name(f->call[i].name) : -1;

		if (name >= 0 && f->answer[i].class == ANSWER_EXECUTED && (f->answer[i].code == 'Y' || f->answer[i].code == 'T'))
			judged(s, f, i, name);
	}
}

void metered_said(struct request_sim *q, struct span line, struct span word)
{
	struct world *w = q->conn->world;
	bool unmetered = line_field(line, "unmetered").n > 0;

	if (q->ask != ASK_RATE || !span_equal(word, SPAN("OK")))
		return;
	if (unmetered && w->plan->rates != RATES_OPEN)
		checker_fail(w, INVARIANT_S31, -1, "m%lld: a use was admitted without being counted", (long long)q->name);
	if (!unmetered && w->checker.admitted[q->conn->daemon->index][q->name]-- == 0)
		checker_fail(w, INVARIANT_S31, -1, "m%lld: OK, but no store has admitted that", (long long)q->name);
}
