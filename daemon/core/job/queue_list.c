/* SPDX-License-Identifier: BSD-2-Clause */
/* See queue_list.h. A queue at another store than its home was left there when the set of stores changed. */
#include "daemon/core/job/queue_list.h"

#include "daemon/base/netstring.h"
#include "daemon/core/job/job.h"
#include "daemon/core/job/queue_rows.h"
#include "daemon/core/reply/lists.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/session/rules.h"

static void queues_ask(struct request_context *x, struct listing *l)
{
	struct home_question *q = l->queues.question = job_question(x, SPAN("*"), l->origin, "queues", l);

	l->asker = ASKER_QUEUE_LIST;
	netstring_put_int(&q->words, l->queues.from);
	home_ask(x->engine, q, l->queues.place);
}

static unsigned seek_queues(struct request_context *x, struct listing *l)
{
	l->phase = LISTING_ASKS;
	queues_ask(x, l);
	return 0;
}

/* A list is sorted. If a queue begins between two pieces, the row behind them has moved, and is told again. */
static bool queue_add(const struct request_context *x, struct listing *l, unsigned node, struct span *text)
{
	struct queue_row row;

	if (!queue_row_read(text, &row))
		return false;
	if (l->queues.last.n > 0 && span_compare(row.name, l->queues.last) <= 0)
		return true;
	job_text_set(&l->queues.last, row.name);
	if (!session_may_look(x->core, l->session, row.name) || !span_starts(row.name, (struct span){l->prefix, l->prefix_n}))
		return true;
	if (rendezvous_node(x->core, HOME_OF_QUEUE, row.name, 0) != node)
		l->queues.astray++;
	else if (!l->after || span_compare(row.name, (struct span){l->after, l->after_n}) > 0)
		(void)queue_rows_add(&l->page, &row);
	return true;
}

static bool tell_queue(struct request_context *x, struct listing *l, size_t i)
{
	static const char *const field[QUEUE_FIGURES] = {"due", "leased", "dead", "next_ms"};
	struct queue_row row = queue_rows_get(&l->page, i);
	struct reply r;

	row_begin(x, span_of(l->tag), &r);
	reply_text(&r, "queue", row.name);
	for (unsigned k = 0; k < QUEUE_FIGURES; k++)
		if (row.figure[k] >= 0)
			reply_int(&r, field[k], row.figure[k]);
	row_end(x, l->session, &r);
	return true;
}

const struct listed listed_queues = {seek_queues, tell_queue};

/* next: where the next piece begins; less than 0: there is none. False: the answer makes no sense, since the next piece is no other than this one. */
static bool queues_read(const struct request_context *x, struct listing *l, const struct home_question *q, int64_t *ret_next)
{
	struct span text = q->text;

	*ret_next = -1;
	if (q->code != 'T' || !netstring_next_int(&text, ret_next))
		return false;
	while (queue_add(x, l, q->node, &text))
		;
	return text.n == 0 && (*ret_next < 0 || *ret_next > l->queues.from);
}

static void queues_next_store(struct listing *l)
{
	l->queues.from = 0;
	l->queues.place++;
	job_text_free(&l->queues.last);
}

void queue_list_told(struct request_context *x, struct home_question *q)
{
	struct listing *l = q->about;
	struct span why = q->text;
	int64_t next = -1;

	l->queues.question = NULL;
	if (q->outcome != HOME_ANSWERED) {
		l->queues.missing++;
		queues_next_store(l);
	} else if (!queues_read(x, l, q, &next)) {
		l->queues.missing++;
		why = JOB_NONSENSE;
		queues_next_store(l);
	} else if (next >= 0) {
		l->queues.from = next;
	} else {
		queues_next_store(l);
	}
	if (l->queues.place < x->core->conf.nodes) {
		queues_ask(x, l);
	} else if (l->queues.missing == x->core->conf.nodes) {
		core_answers(x->core, VERB_LIST);
		tell_error(x, l->session, span_of(l->tag), ERROR_UNAVAILABLE, "no store can be asked for its queues: %.*s", (int)why.n,
		           why.p ? why.p : "");
		lists_over(x, l);
	} else {
		lists_found(x, l);
	}
}
