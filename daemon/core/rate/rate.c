/* SPDX-License-Identifier: BSD-2-Clause */
/* See rate.h. How uses are counted stands in lua/rate.lua. */
#include "daemon/core/rate/rate.h"

#include "daemon/base/netstring.h"
#include "daemon/core/rate/stored_limits.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/tell.h"

struct home_question *rate_question(struct request_context *x, const struct session *s, struct span name, const struct rate_use *use)
{
	struct home_question *q = home_question_new(x->engine, HOME_OF_RATE, name, s->origin);

	netstring_put(&q->words, SPAN("r"));
	netstring_put_int(&q->words, use->limit);
	netstring_put_int(&q->words, use->per);
	netstring_put_int(&q->words, use->cost);
	stored_put_terms(x, s, &q->words);
	return q;
}

/* "left when_ms", as the store says it. */
static bool rate_read(struct span text, int64_t *ret_left, int64_t *ret_when_ms)
{
	int64_t n[2] = {0, 0};
	unsigned at = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == ' ' && at == 0)
			at = 1;
		else if (text.p[i] < '0' || text.p[i] > '9' || n[at] > INT64_MAX / 100)
			return false;
		else
			n[at] = 10 * n[at] + (text.p[i] - '0');
	}
	*ret_left = n[0];
	*ret_when_ms = n[1];
	return at == 1;
}

static void reply_rate(struct request_context *x, const struct pending *p, bool admitted, int64_t left, int64_t when_ms)
{
	struct reply r;

	metric_add(&x->core->metrics, admitted ? METRIC_RATES_ADMITTED : METRIC_RATES_REFUSED, 1);
	reply_begin(&r, session_line(x->sessions), span_of(p->tag), admitted ? "OK" : "BUSY");
	if (admitted)
		reply_int(&r, "left", left);
	reply_int(&r, admitted ? "reset_ms" : "retry_ms", when_ms);
	if (!admitted)
		reply_int(&r, "left", left);
	tell_line(x, p->session, &r);
}

static void reply_unmetered(struct request_context *x, const struct pending *p)
{
	struct reply r;

	metric_add(&x->core->metrics, METRIC_RATES_UNMETERED, 1);
	reply_begin(&r, session_line(x->sessions), span_of(p->tag), "OK");
	reply_int(&r, "left", 0);
	reply_int(&r, "reset_ms", 0);
	reply_text(&r, "unmetered", SPAN("yes"));
	tell_line(x, p->session, &r);
}

static void rate_judged(struct request_context *x, const struct home_question *q)
{
	const struct pending *p = q->pending;
	int64_t left, when_ms;

	metric_add(&x->core->metrics, METRIC_RATES_NEXT, q->place > 0);
	if (q->code == 'B')
		tell_stored_full(x, p->session, span_of(p->tag), q->text);
	else if (rate_read(q->text, &left, &when_ms))
		reply_rate(x, p, q->code == 'Y', left, when_ms);
	else
		tell_error(x, p->session, span_of(p->tag), ERROR_INTERNAL, "the store has told no numbers");
}

static void rate_lost(struct request_context *x, const struct home_question *q)
{
	const struct pending *p = q->pending;

	if (x->core->conf.home_lost == LOST_OPEN && !q->misnamed) {
		reply_unmetered(x, p);
		return;
	}
	metric_add(&x->core->metrics, METRIC_RATES_FAILED, 1);
	tell_error(x, p->session, span_of(p->tag), ERROR_UNAVAILABLE, "the store that keeps this limit cannot be used: %.*s%s", (int)q->text.n,
	           q->text.p ? q->text.p : "", q->outcome == HOME_UNKNOWN ? "; it may have counted this request" : "");
}

bool rate_goes_on(struct request_context *x, struct home_question *q)
{
	if (q->outcome == HOME_ANSWERED || q->misnamed || x->core->conf.home_lost != LOST_NEXT || q->place + 1 >= x->core->conf.nodes)
		return false;
	home_ask(x->engine, q, q->place + 1);
	return true;
}

bool rate_is_refused(const struct home_question *q, int64_t *ret_when_ms)
{
	int64_t left;

	return q->outcome == HOME_ANSWERED && q->code == 'T' && rate_read(q->text, &left, ret_when_ms);
}

void rate_conclude(struct request_context *x, struct pending *p, struct home_question *q)
{
	struct session *s = p->session;

	q->pending = p;
	TAILQ_REMOVE(&s->pendings, p, in_session);
	core_answers(x->core, VERB_RATE);
	if (q->outcome == HOME_ANSWERED)
		rate_judged(x, q);
	else
		rate_lost(x, q);
	session_answered(x->sessions, s, p->tag[0] != '\0');
	pending_free(&x->engine->table.pendings, p);
	q->pending = NULL;
}

void rate_told(struct request_context *x, struct home_question *q)
{
	struct pending *p = q->pending;

	if (p->session && rate_goes_on(x, q))
		return;
	if (p->session)
		rate_conclude(x, p, q);
	else
		pending_free(&x->engine->table.pendings, p);
	home_question_free(x->engine, q);
}
