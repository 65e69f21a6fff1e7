/* SPDX-License-Identifier: BSD-2-Clause */
/* See help_stats.h. */
#include "daemon/core/request/help_stats.h"

#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/request/all_figures.h"
#include "proto/text.h"

static void row_help(struct request_context *x, struct session *s, enum verb verb)
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

static void help_for_programs(struct request_context *x, struct session *s)
{
	for (enum verb verb = 0; verb < VERB_N; verb++)
		row_help(x, s, verb);
	rows_done(x, s, x->request.tag, VERB_N, -1);
}

/* verb: VERB_N of all requests. */
static void help_for_people(struct request_context *x, struct session *s, enum verb verb)
{
	char line[512];
	struct reply r;
	unsigned i = 0;
	size_t n;

	for (; (n = help_line(verb, i, line, sizeof(line))) > 0; i++) {
		row_begin(x, x->request.tag, &r);
		reply_put_line(&r, (struct span){line, n});
		row_end(x, s, &r);
	}
	rows_done(x, s, x->request.tag, i, -1);
}

void serve_HELP(struct request_context *x, struct session *s)
{
	struct span what = x->request.words > 0 ? x->request.word[0] : SPAN("");
	enum verb verb = command_find(what);

	if (word_is(what, "all"))
		help_for_programs(x, s);
	else if (verb == VERB_N && what.n > 0)
		tell_error(x, s, x->request.tag, ERROR_NOTFOUND, "no such request: HELP lists them");
	else
		help_for_people(x, s, verb);
}

/* STATS is being answered. */
struct telling {
	struct request_context *x;
	struct session *session;
	size_t bytes;
	uint64_t told, left;
};

/* Rows end where they get long: what is left out then is the end of the table, the buckets of histograms. */
static void row_stats(void *context, const struct sample *sample)
{
	struct telling *t = context;
	char name[SAMPLE_NAME], value[SAMPLE_TEXT];
	struct reply r;

	if (rows_are_long(t->x, t->bytes)) {
		t->left++;
		return;
	}
	sample_text(sample, value);
	row_begin(t->x, t->x->request.tag, &r);
	reply_text(&r, "metric", (struct span){name, sample_name(sample, name)});
	reply_text(&r, "value", span_of(value));
	for (unsigned i = 0; i < sample->labels; i++)
		reply_text(&r, sample->label[i].name, span_of(sample->label[i].value));
	t->bytes += (size_t)(r.at - r.start) + 1;
	row_end(t->x, t->session, &r);
	t->told++;
}

void serve_STATS(struct request_context *x, struct session *s)
{
	struct telling t = {.x = x, .session = s};
	bool all = x->request.words > 0;

	if (all && !word_is(x->request.word[0], "all")) {
		tell_mistake(x, s, ERROR_ARG, "STATS takes all, or nothing");
		return;
	}
	tally(x, &(struct sampler){&t, row_stats, all});
	rows_done(x, s, x->request.tag, t.told, t.left > 0 ? (int64_t)t.left : -1);
}
