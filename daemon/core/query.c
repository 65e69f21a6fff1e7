/* SPDX-License-Identifier: BSD-2-Clause */
/* See query.h. */
#include "daemon/core/query.h"

#include "daemon/core/rows.h"
#include "daemon/core/tell.h"

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
		tell_error(x, s, x->request.tag, ERROR_NOTFOUND, "no such request: HELP lists them");
		return;
	}
	row_help(x, s, verb);
	rows_done(x, s, x->request.tag, 1, -1);
}

static int64_t failure_rate(const struct metrics *m)
{
	int64_t all = metrics_answered(m);

	return all > 0 ? m->value[METRIC_FAILURES] * 1000000 / all : 0;
}

void query_figures(const struct commander *x, struct metrics *ret_figures)
{
	*ret_figures = x->core->metrics;
	ret_figures->value[METRIC_NAMES] = (int64_t)x->engine->table.map.count;
	ret_figures->value[METRIC_TIMERS] = (int64_t)x->core->timers.count;
	ret_figures->value[METRIC_FAILURE_RATE] = failure_rate(ret_figures);
}

void serve_STATS(struct commander *x, struct session *s)
{
	struct metrics now;

	query_figures(x, &now);
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
