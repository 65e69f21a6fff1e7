/* SPDX-License-Identifier: BSD-2-Clause */
/* See job_list.h. The jobs of a queue are told as they come, in the order of its home: due, leased, dead. */
#include "daemon/core/job/job_list.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/job/job.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/session/rules.h"

#include <inttypes.h>

struct job_list {
	enum job_asker asker;
	LIST_ENTRY(job_list) in_all;
	struct pending *pending;
	struct home_question *question;
	struct span name;           /* owned: the queue */
	int64_t from;               /* where the next piece begins */
	size_t most, told, bytes;
};

static void job_list_ask(struct request_context *x, struct job_list *v)
{
	struct home_question *q = v->question = job_question(x, v->name, v->pending->origin, "list", v);

	netstring_put_int(&q->words, v->from);
	netstring_put_int(&q->words, whole_ms(x->core->conf.jobs_keep_us));
	home_ask(x->engine, q, 0);
}

static struct job_list *job_list_new(struct request_context *x, struct session *s, size_t most)
{
	const struct request *q = &x->request;
	struct job_list *v = mem_alloc(sizeof(*v));
	struct pending *p = v->pending = pool_get(&x->engine->table.pendings);

	p->session = s;
	p->origin = s->origin;
	origin_asks(p->origin);
	p->verb = q->verb;
	memcpy(p->tag, q->tag.p ? q->tag.p : "", q->tag.n);
	TAILQ_INSERT_TAIL(&s->pendings, p, in_session);
	s->busy |= q->tag.n == 0;
	v->asker = ASKER_SURVEY;
	v->most = most;
	v->name = job_text_keep(q->field[FIELD_PREFIX].text);
	LIST_INSERT_HEAD(&x->surveys, v, in_all);
	return v;
}

static void job_list_free(struct job_list *v)
{
	if (v->question)
		v->question->about = NULL;
	LIST_REMOVE(v, in_all);
	job_text_free(&v->name);
	mem_free(v);
}

void surveys_free_all(struct request_context *x)
{
	struct job_list *v;

	while ((v = LIST_FIRST(&x->surveys))) {
		pending_free(&x->engine->table.pendings, v->pending);
		job_list_free(v);
	}
}

/* Its session is answered, or has gone. */
static void job_list_over(struct request_context *x, struct job_list *v)
{
	struct pending *p = v->pending;
	struct session *s = p->session;

	if (s) {
		TAILQ_REMOVE(&s->pendings, p, in_session);
		session_answered(x->sessions, s, p->tag[0] != '\0');
	}
	pending_free(&x->engine->table.pendings, p);
	job_list_free(v);
}

/* --- the request --- */

static bool decimal_read(struct span text, int64_t *ret_n)
{
	int64_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || i > 8)
			return false;
		n = 10 * n + (text.p[i] - '0');
	}
	*ret_n = n;
	return text.n > 0;
}

void job_list_jobs(struct request_context *x, struct session *s, size_t most)
{
	const struct request *q = &x->request;
	int64_t from = 0;
	struct job_list *v;

	if (!request_has(q, FIELD_PREFIX) || q->field[FIELD_PREFIX].text.n == 0) {
		tell_mistake(x, s, ERROR_ARG, "LIST jobs needs prefix=, the name of the queue");
	} else if (request_has(q, FIELD_AFTER) && !decimal_read(q->field[FIELD_AFTER].text, &from)) {
		tell_mistake(x, s, ERROR_ARG, "after= of LIST jobs is a number, as the page before has told it");
	} else {
		v = job_list_new(x, s, most);
		v->from = from;
		job_list_ask(x, v);
	}
}

/* --- jobs --- */

static bool tell_job(struct request_context *x, struct job_list *v, struct span *text)
{
	struct session *s = v->pending->session;
	struct span id, state, lock, payload;
	size_t unsent = s->unsent;
	int64_t ms, failed;
	struct reply r;

	if (!netstring_next(text, &id) || !netstring_next(text, &state) || !netstring_next_int(text, &ms) || !netstring_next_int(text, &failed) ||
	    !netstring_next(text, &lock) || !netstring_next(text, &payload))
		return false;
	reply_begin(&r, session_long_line(x->sessions, 4 * payload.n), span_of(v->pending->tag), "*");
	reply_widen(&r, 4 * payload.n);
	reply_text(&r, "queue", v->name);
	reply_text(&r, "job", id);
	reply_text(&r, "state", state);
	reply_int(&r, span_equal(state, SPAN("due")) ? "due_ms" : span_equal(state, SPAN("dead")) ? "dead_ms" : "lease_ms", ms);
	reply_int(&r, "failed", failed);
	if (lock.n > 0)
		reply_text(&r, "name", session_may_look(x->core, s, lock) ? lock : SPAN(""));
	reply_text(&r, "payload", payload);
	row_end(x, s, &r);
	v->told++;
	v->bytes += s->unsent - unsent;
	return true;
}

/* after: where the next page begins; less than 0: there is none. */
static void jobs_done(struct request_context *x, struct job_list *v, int64_t after)
{
	struct reply r;

	core_answers(x->core, VERB_LIST);
	reply_begin(&r, session_line(x->sessions), span_of(v->pending->tag), "OK");
	reply_int(&r, "n", (int64_t)v->told);
	if (after >= 0)
		reply_int(&r, "after", after);
	tell_line(x, v->pending->session, &r);
	job_list_over(x, v);
}

static bool jobs_have_room(const struct request_context *x, const struct job_list *v)
{
	return v->told < v->most && !rows_are_long(x, v->bytes);
}

/* Tells the rows of this piece, as far as the page has room. next: where the next piece begins; less than 0: there is none. False: it makes no sense. */
static bool jobs_tell(struct request_context *x, struct job_list *v, struct span *text, int64_t *ret_next)
{
	int64_t from = v->from;

	if (!netstring_next_int(text, ret_next))
		return false;
	for (; text->n > 0 && jobs_have_room(x, v); v->from++)
		if (!tell_job(x, v, text))
			return false;
	return text->n > 0 || *ret_next < 0 || (*ret_next == v->from && v->from > from);
}

static void jobs_go_on(struct request_context *x, struct job_list *v, bool more, int64_t next)
{
	if (more)
		jobs_done(x, v, v->from);
	else if (next >= 0 && v->told < v->most)
		job_list_ask(x, v);
	else
		jobs_done(x, v, next);
}

static void jobs_missed(struct request_context *x, struct job_list *v, struct span why)
{
	core_answers(x->core, VERB_LIST);
	tell_error(x, v->pending->session, span_of(v->pending->tag), ERROR_UNAVAILABLE, "the home of the queue cannot be used: %.*s", (int)why.n,
	           why.p ? why.p : "");
	job_list_over(x, v);
}

static void jobs_told(struct request_context *x, struct job_list *v, const struct home_question *q)
{
	struct span text = q->text;
	int64_t next;

	if (q->outcome != HOME_ANSWERED)
		jobs_missed(x, v, q->text);
	else if (q->code != 'T' || !jobs_tell(x, v, &text, &next))
		jobs_missed(x, v, JOB_NONSENSE);
	else
		jobs_go_on(x, v, text.n > 0, next);
}

void job_list_told(struct request_context *x, struct home_question *q)
{
	struct job_list *v = q->about;

	v->question = NULL;
	if (!v->pending->session)
		job_list_over(x, v);
	else
		jobs_told(x, v, q);
}
