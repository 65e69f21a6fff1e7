/* SPDX-License-Identifier: BSD-2-Clause */
/* See query.h. */
#include "daemon/core/query.h"

#include "daemon/core/rows.h"
#include "daemon/core/tally.h"
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

/* STATS is being answered. */
struct telling {
	struct commander *x;
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

void serve_STATS(struct commander *x, struct session *s)
{
	struct telling t = {.x = x, .session = s};

	tally(x, &(struct sampler){&t, row_stats});
	rows_done(x, s, x->request.tag, t.told, t.left > 0 ? (int64_t)t.left : -1);
}
