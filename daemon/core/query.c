/* SPDX-License-Identifier: BSD-2-Clause */
/* HELP, SHOW, STATS: what only looks, and is answered at once. */
#include "daemon/core/rows.h"

static void row_help(struct commander *x, struct session *s, enum verb verb)
{
	char usage[512];
	struct reply r;
	size_t n = command_usage(verb, usage, sizeof(usage));

	row_begin(x, x->request.tag, &r);
	reply_text(&r, "verb", span_of(command_table[verb].word));
	reply_text(&r, "usage", (struct span){usage, n});
	reply_text(&r, "help", span_of(command_table[verb].help));
	row_end(x, s, &r);
}

void serve_HELP(struct commander *x, struct session *s)
{
	enum verb verb;

	if (x->request.words == 0) {
		for (verb = 0; verb < VERB_N; verb++)
			row_help(x, s, verb);
		rows_done(x, s, x->request.tag, VERB_N, -1);
		return;
	}
	verb = command_find(x->request.word[0]);
	if (verb == VERB_N) {
		command_reply_error(x, s, x->request.tag, ERROR_NOTFOUND, "no such request: HELP lists them");
		return;
	}
	row_help(x, s, verb);
	rows_done(x, s, x->request.tag, 1, -1);
}

static void reply_texts(struct reply *r, const struct claim *c)
{
	if (c->owner)
		reply_text(r, "owner", claim_owner(c));
	if (c->note)
		reply_text(r, "note", (struct span){c->note, c->note_n});
}

static void row_holder(struct commander *x, struct session *s, const struct lock *l)
{
	struct reply r;

	row_begin(x, x->request.tag, &r);
	reply_text(&r, "role", SPAN("holder"));
	reply_int(&r, "pos", 0);
	reply_session(x, &r, l->holder->session);
	reply_int(&r, "fence", l->holder->fence);
	reply_ms(&r, "held_ms", instant_diff(x->core->now, l->holder->granted_at));
	reply_ms(&r, "valid_ms", instant_diff(lock_deadline(&x->engine->table, l), x->core->now));
	reply_int(&r, "count", l->holder->count);
	reply_texts(&r, l->holder);
	row_end(x, s, &r);
}

static void row_elsewhere(struct commander *x, struct session *s, const struct lock *l)
{
	struct reply r;

	row_begin(x, x->request.tag, &r);
	reply_text(&r, "role", SPAN("holder"));
	reply_int(&r, "pos", 0);
	reply_elsewhere(&r, l);
	reply_int(&r, "ttl_ms", l->elsewhere.pttl_ms);
	row_end(x, s, &r);
}

static void row_waiter(struct commander *x, struct session *s, const struct claim *c, unsigned pos)
{
	struct reply r;

	row_begin(x, x->request.tag, &r);
	reply_text(&r, "role", SPAN("waiter"));
	reply_int(&r, "pos", pos);
	reply_session(x, &r, c->session);
	reply_ms(&r, "waited_ms", instant_diff(x->core->now, c->asked_at));
	reply_texts(&r, c);
	row_end(x, s, &r);
}

/* Those that are there for one round wait for nobody. */
static unsigned rows_waiters(struct commander *x, struct session *s, const struct lock *l, size_t begin)
{
	const struct claim *c;
	unsigned pos = 0;

	TAILQ_FOREACH(c, &l->line, in_lock) {
		if (!c->patient)
			continue;
		if (rows_are_long(x, s->unsent - begin))
			break;
		row_waiter(x, s, c, ++pos);
	}
	return pos;
}

void serve_SHOW(struct commander *x, struct session *s)
{
	const struct lock *l = lock_find(&x->engine->table, x->request.word[0]);
	unsigned rows = 0, waiters, left_out;
	size_t begin = s->unsent;

	if (!l) {
		rows_done(x, s, x->request.tag, 0, -1);
		return;
	}
	if (l->holder) {
		row_holder(x, s, l);
		rows++;
	} else if (l->state != LOCK_IDLE && l->elsewhere.known) {
		row_elsewhere(x, s, l);
		rows++;
	}
	waiters = rows_waiters(x, s, l, begin);
	left_out = l->waiting - waiters;
	rows_done(x, s, x->request.tag, rows + waiters, left_out > 0 ? (int64_t)left_out : -1);
}

static int64_t failure_rate(const struct metrics *m)
{
	int64_t failures = m->value[METRIC_FAILURES];
	int64_t all = failures + m->value[METRIC_GRANTS] + m->value[METRIC_REFUSALS] + m->value[METRIC_TIMEOUTS];

	return all > 0 ? failures * 1000000 / all : 0;
}

void serve_STATS(struct commander *x, struct session *s)
{
	struct metrics now = x->core->metrics;

	now.value[METRIC_NAMES] = (int64_t)x->engine->table.map.count;
	now.value[METRIC_TIMERS] = (int64_t)x->core->timers.count;
	now.value[METRIC_FAILURE_RATE] = failure_rate(&now);
	for (unsigned i = 0; i < METRIC_N; i++) {
		bool in_ms = metric_table[i].kind == METRIC_COUNTER_MS || metric_table[i].kind == METRIC_PEAK_MS;
		struct reply r;

		row_begin(x, x->request.tag, &r);
		reply_text(&r, "metric", span_of(metric_table[i].name));
		if (in_ms)
			reply_ms(&r, "value", now.value[i]);
		else
			reply_int(&r, "value", now.value[i]);
		row_end(x, s, &r);
	}
	rows_done(x, s, x->request.tag, METRIC_N, -1);
}
