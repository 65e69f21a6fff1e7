/* SPDX-License-Identifier: BSD-2-Clause */
/* See resume.h. */
#include "daemon/core/resume/resume.h"

#include "daemon/base/buf.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/member/membership.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/rights/rights.h"
#include "daemon/core/round/round.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/jobs.h"

#include <inttypes.h>
#include <stdlib.h>

struct span hand_over_stores(struct core *core)
{
	const struct core_conf *c = &core->conf;
	struct span text;
	struct buf b = {0};

	buf_printf(&b, "%s", c->store);
	for (unsigned i = 0; i < c->nodes; i++)
		buf_printf(&b, " %s", c->label[i]);
	text.n = buf_length(&b) < JOURNAL_LINE_MOST ? buf_length(&b) : JOURNAL_LINE_MOST;
	text.p = arena_copy(&core->out->arena, buf_begin(&b), text.n);
	buf_release(&b);
	return text;
}

bool hand_over_is_awaited(const struct request_context *x)
{
	const struct session_table *t = x->sessions;
	const struct job_queue *queue;
	const struct pending *p;

	LIST_FOREACH(queue, &x->queues, in_all)
		if (queue->question || queue->asking > 0)
			return true;
	for (uint32_t i = 0; i < t->slots; i++) {
		if (!t->slot[i])
			continue;
		if (!TAILQ_EMPTY(&t->slot[i]->listings))
			return true;
		TAILQ_FOREACH(p, &t->slot[i]->pendings, in_session)
			if (!p->auth && !(p->turn && !rate_turn_is_asked(p->turn)))
				return true;
	}
	return false;
}

/* --- lines of requests ------------------------------------------------------------------------------------------------ */

/* A request that waits, or that the stores will answer soon. */
struct asked {
	const struct session *session;
	struct instant at;
	struct instant place; /* the earliest is served first: each level of priority counts as time spent waiting */
	uint64_t order;       /* among those with the same place */
	size_t line, n;  /* its line in `lines` */
	struct span trace; /* in a separate field, which an older build skips. In the line the older build would refuse it */
};

struct requests {
	struct buf lines, list; /* list: of struct asked */
};

static void put_text(struct buf *b, const char *field, struct span text)
{
	size_t room = 4 * text.n + 3;

	buf_append(b, field, strlen(field));
	buf_commit(b, quote(text, buf_reserve(b, room), room));
}

static void put_number(struct buf *b, const char *field, uint64_t number)
{
	buf_printf(b, "%s%" PRIu64, field, number);
}

static void put_duration(struct buf *b, const char *field, int64_t us)
{
	char text[32];

	buf_append(b, field, strlen(field));
	buf_append(b, text, duration_format(us, text));
}

/* Writes wait= as the client sent it, counted from the request on. */
static void put_wait(struct buf *b, struct instant asked_at, struct instant until)
{
	if (until.us == INSTANT_NEVER.us)
		buf_append(b, " wait=forever", 13);
	else
		put_duration(b, " wait=", instant_diff(until, asked_at) > 0 ? instant_diff(until, asked_at) : 1);
}

static void line_begin(struct requests *r, const char *tag, const char *verb)
{
	if (*tag)
		buf_printf(&r->lines, "@%s ", tag);
	buf_append(&r->lines, verb, strlen(verb));
}

#define NO_TRACE ((struct span){0})

static void line_end(struct requests *r, size_t from, const struct session *s, struct instant at, unsigned priority, uint64_t order, struct span trace)
{
	const struct asked asked = {s, at, instant_add(at, -(int64_t)priority * PRIORITY_US), order, from, buf_length(&r->lines) - from, trace};

	buf_append(&r->list, &asked, sizeof(asked));
}

/* What requests that may wait have in common. */
struct lock_terms {
	struct span owner;
	struct remark remark;
	int64_t ttl_us, delay_us;
	unsigned priority, count;
	bool renew, shared;
};

static void put_terms(struct buf *b, const struct lock_terms *t)
{
	put_duration(b, " ttl=", t->ttl_us);
	if (t->delay_us > 0)
		put_duration(b, " delay=", t->delay_us);
	if (t->owner.n > 0)
		put_text(b, " owner=", t->owner);
	if (t->remark.note.n > 0)
		put_text(b, " note=", t->remark.note);
	if (t->priority > 0)
		put_number(b, " priority=", t->priority);
	if (t->count > 0)
		put_number(b, " count=", t->count);
	if (!t->renew)
		buf_append(b, " renew=no", 9);
	if (t->shared)
		buf_append(b, " mode=shared", 12);
}

static void ask_lock(struct requests *r, const struct claim *c)
{
	const struct asking *a = c->asking;
	const struct lock_terms terms = {claim_owner(c), claim_remark(c), c->ttl_us, c->delay_us, c->priority, a->count, c->renew, c->shared};
	size_t from = buf_length(&r->lines);

	line_begin(r, a->tag, "LOCK");
	put_text(&r->lines, " ", lock_name(c->lock));
	put_terms(&r->lines, &terms);
	if (c->patient)
		put_wait(&r->lines, a->asked_at, a->wait_until);
	line_end(r, from, c->session, a->asked_at, c->priority, a->order, terms.remark.trace);
}

/* Among requests of the same moment, the order is that in which they wait for their first names. */
static uint64_t group_order(const struct group *g)
{
	uint64_t order = UINT64_MAX;

	for (unsigned i = 0; i < g->parts; i++) {
		const struct claim *c = g->part[i].claim;

		if (c && c->asking && c->asking->order < order)
			order = c->asking->order;
	}
	return order;
}

static struct lock_terms bid_terms(const struct bid *b)
{
	return (struct lock_terms){
		.owner = b->owner, .remark = kept_remark(&b->remark), .ttl_us = b->ttl_us, .priority = b->priority, .count = b->count, .renew = true};
}

static void ask_bid(struct requests *r, const struct bid *b, size_t from, const struct lock_terms *terms, uint64_t order)
{
	put_terms(&r->lines, terms);
	if (b->patient)
		put_wait(&r->lines, b->asked_at, b->wait_until);
	line_end(r, from, b->session, b->asked_at, b->priority, order, terms->remark.trace);
}

static void ask_group(struct requests *r, const struct group *g)
{
	struct lock_terms terms = bid_terms(&g->bid);
	size_t from = buf_length(&r->lines);

	terms.delay_us = g->delay_us;
	terms.renew = g->renew;
	terms.shared = g->shared;
	line_begin(r, g->bid.tag, g->any ? "LOCKANY" : "LOCKALL");
	for (unsigned i = 0; i < g->parts; i++)
		put_text(&r->lines, " ", g->part[i].name);
	ask_bid(r, &g->bid, from, &terms, group_order(g));
}

static unsigned permits_of(const struct permit *of)
{
	const struct permit *p;
	unsigned n = 0;

	PERMITS_FOREACH(p, of->bid.session)
		n += p->state == PERMIT_HELD && p->semaphore == of->semaphore && span_equal(p->bid.owner, of->bid.owner);
	return n;
}

static void ask_permit(struct requests *r, const struct permit *p)
{
	struct lock_terms terms = bid_terms(&p->bid);
	size_t from = buf_length(&r->lines);

	if (terms.count > 0)
		terms.count = permits_of(p) + 1;
	line_begin(r, p->bid.tag, "ACQUIRE");
	put_text(&r->lines, " ", p->semaphore->name);
	put_number(&r->lines, " limit=", p->semaphore->limit);
	ask_bid(r, &p->bid, from, &terms, p->order);
}

static void ask_take(struct requests *r, const struct take *t)
{
	const struct lock_terms terms = bid_terms(&t->bid);
	size_t from = buf_length(&r->lines);

	line_begin(r, t->bid.tag, "TAKE");
	put_text(&r->lines, " ", t->queue->name);
	ask_bid(r, &t->bid, from, &terms, t->place);
}

static void ask_rate(struct requests *r, const struct pending *p)
{
	size_t from = buf_length(&r->lines);
	struct rate_asked asked = rate_turn_asks(p->turn);

	line_begin(r, p->tag, "RATE");
	put_text(&r->lines, " ", asked.name);
	put_number(&r->lines, " limit=", (uint64_t)asked.use.limit);
	put_duration(&r->lines, " per=", asked.use.per);
	put_number(&r->lines, " cost=", (uint64_t)asked.use.cost);
	put_wait(&r->lines, asked.at, asked.until);
	line_end(r, from, p->session, asked.at, 0, 0, NO_TRACE);
}

/* An EXTEND is for the ttl that the hold has now, even if the client asked for another one. */
static void ask_pending_extend(struct requests *r, const struct pending *p)
{
	size_t from = buf_length(&r->lines);

	line_begin(r, p->tag, "EXTEND");
	put_text(&r->lines, " ", lock_name(p->lock));
	if (p->claim->owner_n > 0)
		put_text(&r->lines, " owner=", claim_owner(p->claim));
	put_duration(&r->lines, " ttl=", p->claim->ttl_us);
	line_end(r, from, p->session, p->asked_at, 0, 0, NO_TRACE);
}

static int asked_compare(const void *a, const void *b)
{
	const struct asked *one = a, *other = b;
	int64_t later = instant_diff(one->place, other->place);

	if (later == 0)
		return (one->order > other->order) - (one->order < other->order);
	return later > 0 ? 1 : -1;
}

static void ask_auth(struct requests *r, const struct pending *p)
{
	size_t from = buf_length(&r->lines);
	struct span user, secret;
	struct instant at = auth_asks(p->auth, &user, &secret);

	line_begin(r, p->tag, "AUTH");
	put_text(&r->lines, " ", user);
	put_text(&r->lines, " ", secret);
	line_end(r, from, p->session, at, 0, 0, NO_TRACE);
}

/* --- requests ---------------------------------------------------------------------------------------------------------- */

static void remember_line(struct request_context *x, const struct session *s, struct span line, struct instant since, int64_t flags, struct span trace)
{
	struct journal_record r = {.kind = JOURNAL_LINE, .connection = (int64_t)s->id, .since_us = since.us};

	do {
		r.line = (struct span){line.p, line.n < JOURNAL_LINE_MOST ? line.n : JOURNAL_LINE_MOST};
		line = (struct span){line.p + r.line.n, line.n - r.line.n};
		r.flags = flags | (line.n > 0 ? JOURNAL_GOES_ON : 0);
		if (line.n == 0)
			r.trace = trace;
		remember(x, &r);
	} while (line.n > 0);
}

static void remember_unanswered(struct request_context *x, const struct session *s, const char *tag)
{
	remember(x, &(struct journal_record){.kind = JOURNAL_UNANSWERED, .connection = (int64_t)s->id, .line = span_of(tag)});
}

static void ask_pending(struct request_context *x, struct requests *r, const struct pending *p)
{
	if (p->turn)
		ask_rate(r, p);
	else if (p->auth)
		ask_auth(r, p);
	else if (p->verb == VERB_EXTEND && !p->permit && p->claim->state == CLAIM_HELD)
		ask_pending_extend(r, p);
	else
		remember_unanswered(x, p->session, p->tag);
}

/* Requests whose connection was lost lose their place. */
static void session_asks(struct request_context *x, struct requests *r, const struct session *s)
{
	const struct listing *listing;
	const struct pending *pending;
	const struct permit *permit;
	const struct claim *c;
	const struct group *g;
	const struct take *t;

	TAILQ_FOREACH(c, &s->claims, in_session)
		if (c->state == CLAIM_WAITING && !c->not_notified)
			ask_lock(r, c);
	GROUPS_FOREACH(g, s)
		if (!g->take && !g->bid.not_notified && !g->bid.reason_sent)
			ask_group(r, g);
	PERMITS_FOREACH(permit, s)
		if (permit_is_asking(permit) && !permit->bid.not_notified && !permit->bid.reason_sent)
			ask_permit(r, permit);
	for (t = take_first(s); t; t = take_next(t))
		ask_take(r, t);
	TAILQ_FOREACH(pending, &s->pendings, in_session)
		ask_pending(x, r, pending);
	TAILQ_FOREACH(listing, &s->listings, in_session)
		remember_unanswered(x, s, listing->tag);
}

static void session_leaves(struct request_context *x, const struct session *s)
{
	if (s->leaving || s->killed)
		remember(x, &(struct journal_record){.kind = JOURNAL_LEAVES, .connection = (int64_t)s->id,
		                                     .flags = (s->leaving ? JOURNAL_LEAVING : 0) | (s->eof ? JOURNAL_EOF : 0) |
		                                              (s->killed ? JOURNAL_KILLED : 0)});
}

static void session_has_read(struct request_context *x, const struct session *s)
{
	struct lines_ahead rest = s->ahead;
	struct buf lines;
	struct input line;

	if (rest.count == 0)
		return;
	lines = *rest.lines; /* a copy of the head only, which lines_ahead_next changes */
	rest.lines = &lines;
	while (rest.count > 0) {
		(void)lines_ahead_next(&rest, &line);
		remember_line(x, s, (struct span){line.p, line.n}, (struct instant){0}, line.is_cut ? JOURNAL_IS_CUT : 0, NO_TRACE);
	}
}

static void requests_remember(struct request_context *x, const struct requests *r)
{
	struct asked *asked = (struct asked *)(void *)buf_begin(&r->list);
	size_t n = buf_length(&r->list) / sizeof(*asked);

	if (n > 0)
		qsort(asked, n, sizeof(*asked), asked_compare);
	for (size_t i = 0; i < n; i++)
		remember_line(x, asked[i].session, (struct span){buf_begin(&r->lines) + asked[i].line, asked[i].n}, asked[i].at, 0,
		              asked[i].trace);
}

/* --- stores ------------------------------------------------------------------------------------------------------------- */

/* Not for the memory store, which begins anew with each process. Its file shows whether it has lost keys. */
static void stores_remember(struct request_context *x)
{
	struct members *ms = &x->engine->members;
	struct journal_record r = members_record(ms), of[MEMBER_RECORDS_MOST];

	if (!x->core->conf.shared)
		return;
	remember(x, &r);
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		unsigned n = member_records(ms, i, of);

		for (unsigned k = 0; k < n; k++)
			remember(x, &of[k]);
	}
}

/* --- jobs --------------------------------------------------------------------------------------------------------------- */

static void job_left_remember(struct request_context *x, struct span queue, const struct lease_value *value, struct instant until, enum job_end end,
			      int64_t delay_us)
{
	remember(x, &(struct journal_record){.kind = JOURNAL_JOB_LEFT,
	                                     .queue = queue,
	                                     .value = value_in_text(x->core, value),
	                                     .delay_us = delay_us,
	                                     .deadline_us = until.us,
	                                     .end = end});
}

/* Jobs that no session has: those that are being ended, those whose locks are being asked for, and those that the homes may just have given. */
static void jobs_left_remember(struct request_context *x)
{
	const struct job_queue *queue;
	const struct job *job;

	LIST_FOREACH(job, &x->jobs, in_all)
		if (!job->session)
			job_left_remember(x, job->queue, &job->value, job->until, job->state == JOB_ENDING ? job->end : JOB_BACK, job->delay_us);
	LIST_FOREACH(queue, &x->queues, in_all)
		if (queue->question)
			job_left_remember(x, queue->name, &queue->value, instant_add(x->core->now, queue->ttl_us), JOB_BACK, 0);
}

/* --- names -------------------------------------------------------------------------------------------------------------- */

static void value_remember(struct request_context *x, struct name *name, const struct lease_value *value, const struct placed *p, bool shared)
{
	if (nodeset_any(p->nodes))
		remember(x, &(struct journal_record){.kind = JOURNAL_RELEASE,
		                                     .name = name_text(name),
		                                     .value = value_in_text(x->core, value),
		                                     .placed = p->nodes.bits,
		                                     .flags = shared ? JOURNAL_SHARE : 0,
		                                     .since_us = p->since.us,
		                                     .until_us = release_until(p).us});
}

/* A group, or a permit that is not granted, gives back what it holds: the next process asks for it again. */
static bool holder_is_handed_over(const struct claim *c)
{
	const struct permit *p = permit_of(c->session);

	return p ? p->state == PERMIT_HELD : !c->session->principal;
}

/* True if one of its holders at least is handed over. */
static bool lock_is_handed_over(const struct lock *l)
{
	const struct claim *c = l->holder;

	while (c && !holder_is_handed_over(c))
		c = lock_next_holder(l, c);
	return c;
}

static struct journal_record ticket_record(struct name *name, const struct stamp *ticket, struct nodeset nodes)
{
	return (struct journal_record){.kind = JOURNAL_TICKET,
	                               .name = name_text(name),
	                               .stamp_us = ticket->us,
	                               .sequence = (int64_t)ticket->sequence,
	                               .reader = ticket->kind == STAMP_READER,
	                               .writer_us = ticket->writer_us,
	                               .placed = nodes.bits};
}

static void ticket_remember(struct request_context *x, struct name *name, const struct contender *k)
{
	struct journal_record r = ticket_record(name, &k->ticket, k->ticket_at);

	r.since_us = k->ticket_since.us;
	r.priority = k->ticket_priority;
	remember(x, &r);
}

/* They come before tickets in use: for an earlier version the last ticket of a name is the one in use. */
static void withdrawn_tickets_remember(struct request_context *x)
{
	const struct call_table *t = &x->engine->calls;

	for (uint32_t i = 0; i < t->slots; i++) {
		const struct release *w = t->slot[i] && t->slot[i]->owner == CALLS_OF_RELEASE ? release_of_calls(t->slot[i]) : NULL;
		struct journal_record r;

		if (!w || w->kind != RELEASE_TICKET)
			continue;
		r = ticket_record(w->calls.name, &w->ticket, nodeset_or(w->unsent, w->calls.open));
		r.flags = JOURNAL_LEFT;
		remember(x, &r);
	}
}

/*
 * The next process asks for the name as soon as it has served the first request for it. That request may not wait, and then its round shows the ticket of those
 * after it. Without a quorum the clocks may not be known well enough to draw one.
 */
static void ticket_draw(struct engine *e, struct contender *k)
{
	if (k->ticket.us == 0 && members_that_may_grant(&e->members) >= engine_quorum(e))
		ticket_take(e, k);
}

static void lock_remember(struct request_context *x, struct lock *l)
{
	struct contender *k = l->contender;
	const struct lease *lease = &l->lease;
	bool gives_back = lease->state == LEASE_HELD && !lock_is_handed_over(l);

	if (l->share && l->holder)
		remember(x, &(struct journal_record){.kind = JOURNAL_GHOST, .name = name_text(&l->name), .until_us = l->share->ghost_until.us});
	if (lease->state == LEASE_NONE || gives_back)
		ticket_draw(x->engine, k);
	if (k->ticket.us > 0)
		ticket_remember(x, &l->name, k);
	if (k->state == CONTENDER_ACQUIRING && k->round)
		value_remember(x, &l->name, &k->round->value, &k->round->placed, k->round->form == FORM_SHARED);
	if (gives_back)
		value_remember(x, &l->name, &lease->value, &lease->placed, lease->shared);
}

static void outstanding_remember(struct request_context *x, const struct release *r)
{
	if (nodeset_any(r->unconfirmed))
		remember(x, &(struct journal_record){.kind = JOURNAL_RELEASE,
		                                     .name = name_text(r->calls.name),
		                                     .value = value_in_text(x->core, &r->value),
		                                     .placed = r->unconfirmed.bits,
		                                     .px_us = r->px_us,
		                                     .delay_us = r->delay_us,
		                                     .flags = (r->kind == RELEASE_LEAVE ? JOURNAL_LEFT : 0) | (r->shared ? JOURNAL_SHARE : 0),
		                                     .since_us = r->value_since.us,
		                                     .until_us = r->until.us});
}

static void names_remember(struct request_context *x)
{
	const struct release *r;
	struct map_node *at = NULL;

	withdrawn_tickets_remember(x);
	while ((at = map_next(&x->engine->table.map, at)))
		lock_remember(x, lock_of_name(container_of(at, struct name, node)));
	TAILQ_FOREACH(r, &x->engine->releases.outstanding, in_list)
		outstanding_remember(x, r);
}

/* --- sessions ----------------------------------------------------------------------------------------------------------- */

static int64_t client_flags(const struct session *s)
{
	return (s->is_unix ? JOURNAL_IS_UNIX : 0) | (s->is_local ? JOURNAL_IS_LOCAL : 0) | (s->is_admin ? JOURNAL_IS_ADMIN : 0) |
	       (s->proven ? JOURNAL_PROVEN : 0) | (s->resumed ? JOURNAL_RESUMED : 0) | (s->resuming && !s->returns ? JOURNAL_RESUMING : 0) |
	       (s->awaiting ? JOURNAL_AWAITING : 0);
}

static void client_remember(struct request_context *x, const struct session *s)
{
	const struct identity *who = s->identity;

	remember(x, &(struct journal_record){
		.kind = JOURNAL_CLIENT,
		.session = (int64_t)s->serial,
		.connection = (int64_t)s->id,
		.flags = client_flags(s),
		.uid = s->uid,
		.pid = s->pid,
		.address = session_address(s),
		.user = span_of(who && who->user ? who->user : ""),
		.groups = who ? (struct span){(const char *)who->groups, who->groups_n * sizeof(who->groups[0])} : SPAN(""),
		.since_us = s->opened_at.us,
		.line = span_of(s->resuming && !s->returns ? s->lasting->resume_tag : "")});
}

/* There are records of known sessions only, such as those with grace. So each session counts as known for this moment. */
static void session_remember(struct request_context *x, struct requests *r, struct session *s)
{
	bool known = s->known;

	if (s->is_web || s->over)
		return;
	(void)session_lasting(x->sessions, s);
	s->known = true;
	record_all_of(x, s);
	s->known = known;
	if (s->detached)
		return;
	client_remember(x, s);
	watch_remember(x, s);
	session_asks(x, r, s);
}

void hand_over(struct request_context *x)
{
	const struct session_table *t = x->sessions;
	struct requests r = {0};
	struct session *s;

	x->hands_over = hand_over_stores(x->core);
	x->snapshot = true;
	x->named = false;
	record_daemon(x);
	stores_remember(x);
	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i])
			session_remember(x, &r, t->slot[i]);
	TAILQ_FOREACH(s, &t->detached, lasting->in_detached)
		session_remember(x, &r, s);
	names_remember(x);
	jobs_left_remember(x);
	requests_remember(x, &r);
	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i] && !t->slot[i]->is_web && !t->slot[i]->over) {
			session_has_read(x, t->slot[i]);
			session_leaves(x, t->slot[i]);
		}
	buf_release(&r.lines);
	buf_release(&r.list);
	x->hands_over = SPAN("");
	x->snapshot = false;
}
