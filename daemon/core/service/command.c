/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines in and out: from a line to its handler, from a notice to its line; HELLO, PING, QUIT, CANCEL. */
#include "daemon/core/service/step.h"

#include "daemon/core/admin/admin.h"
#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/event/core.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/show.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/request/requests.h"
#include "daemon/core/resume/resume.h"
#include "daemon/core/rights/rights.h"
#include "daemon/core/semaphore/permit.h"
#include "proto/foreign.h"

#include <inttypes.h>
#include <stdio.h>

static void claim_is_over(const struct claim *c)
{
	c->session->waiting--;
	c->session->waits_not_notified -= c->not_notified;
}

/* The LOCK of this claim was answered, or has no client left. */
static void claim_answered(struct request_context *x, const struct claim *c)
{
	claim_is_over(c);
	session_answered(x->sessions, c->session, c->not_notified || c->asking->tag[0] != '\0');
}

/* Whether the client can be told now: it has a connection, and if a RESUME is not answered yet, this connection has reported the grant already. */
static bool session_listens(const struct claim *c)
{
	const struct session *s = c->session;

	return !s->detached && (!s->resuming || c->here);
}

static void deliver_granted(struct request_context *x, struct claim *c, unsigned count)
{
	struct session *s = c->session;

	record_held(x, c);
	name_history_add(x, c->session, lock_name(c->lock));
	if (!c->not_notified) {
		core_answers(x->core, VERB_LOCK);
		send_granted(x, c, span_of(c->asking->tag), count);
	} else if (session_listens(c)) {
		claim_bound(x, c, s->lasting->repeat_until); /* else after RESUME is answered */
	}
	s->held++;
	if (x->attends)
		slow_wait(x, s, lock_name(c->lock), claim_remark(c).trace, c->asking->asked_at, "granted");
	claim_answered(x, c);
	claim_end_asking(&x->engine->table, c);
	if (!TAILQ_EMPTY(&s->bids[BID_GROUP]))
		groups_gain(x, s);
	deadlock_note(x, s);
	watch_granted(x, c);
}

static void deliver_refused(struct request_context *x, struct claim *c, enum refusal why)
{
	struct session *s = c->session;

	if (!s->over && !c->not_notified && why != REFUSED_AND_SENT) {
		core_answers(x->core, VERB_LOCK);
		if (why == REFUSED_BUSY)
			busy_send(x, s, span_of(c->asking->tag), c->lock, claim_owner(c));
		else if (why == REFUSED_TIMEOUT)
			busy_send_timeout(x, s, span_of(c->asking->tag), c->lock, claim_owner(c), claim_remark(c).trace, c->asking->asked_at);
		else
			deliver_refusal(x, s, span_of(c->asking->tag), why);
		metric_add(&x->core->metrics, METRIC_FAILURES, why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED);
		metric_waited(&x->core->metrics, refusal_result(why), instant_diff(x->core->now, c->asking->asked_at));
		core_name_waited(x->core, lock_name(c->lock), refusal_result(why), instant_diff(x->core->now, c->asking->asked_at));
	}
	TAILQ_REMOVE(&s->claims, c, in_session);
	claim_is_over(c);
	session_answered(x->sessions, s, c->not_notified || c->asking->tag[0] != '\0');
}

static void deliver_reentered(struct request_context *x, struct claim *c, unsigned count)
{
	struct claim *holder = lock_holder_of(c->lock, c->session, claim_owner(c));
	bool notifies = !c->not_notified && holder->not_notified;

	if (!c->not_notified) {
		if (notifies)
			claim_notified(x, holder);
		else
			record_held(x, holder);
		core_answers(x->core, VERB_LOCK);
		send_granted(x, holder, span_of(c->asking->tag), count);
	}
	metric_add(&x->core->metrics, METRIC_REENTRIES, 1);
	if (x->attends) /* it waited together with another request of its owner */
		slow_wait(x, c->session, lock_name(c->lock), claim_remark(c).trace, c->asking->asked_at, "granted");
	TAILQ_REMOVE(&c->session->claims, c, in_session);
	claim_answered(x, c);
	if (notifies)
		watch_who_waits(x, holder);
}

static void deliver_lost(struct request_context *x, struct claim *c)
{
	report_log_lost(x, report_of_claim(c));
	record_lost(x, c);
	former(x, c, loss_word(c->loss));
	watch(x, c, WATCH_LOST);
	c->not_notified = true;
	if (session_listens(c))
		send_lost(x, c);
	request_context_let_go(x, c->session);
}

static void deliver_validity(struct request_context *x, const struct claim *c, const char *word, const char *field)
{
	if (!c->not_notified && session_listens(c))
		push(x, report_of_claim(c), word, field, lock_valid_us(&x->engine->table, c->lock) / MSEC);
}

/* A grant of which the client was not told. From now on the client has limited time to ask for it. */
static void deliver_adopted(struct request_context *x, struct claim *c)
{
	if (!c->session->returns || c->risked)
		deliver_validity(x, c, "! SAFE", "valid_ms");
	if (c->not_notified && session_listens(c))
		claim_bound(x, c, resume_repeat_until(x, c->session));
	alarms_set(x->core, ALARM_OF_CLAIM, c, ALARM_HELD, c->granted_at);
	session_wake(x->sessions, c->session);
}

static void reply_pending_ok(struct request_context *x, const struct pending *p)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(p->tag), "OK");
	if (p->verb == VERB_EXTEND) {
		reply_grant(x, &r, p->claim);
		reply_mode(&r, p->claim);
	} else {
		reply_text(&r, "name", lock_name(p->lock));
		reply_int(&r, "count", 0);
	}
	send_line(x, p->session, &r);
}

static void pending_send_done(struct request_context *x, const struct pending *p)
{
	if (p->permit)
		permit_send_extended(x, p);
	else
		reply_pending_ok(x, p);
}

static void deliver_pending(struct request_context *x, struct pending *p, enum refusal why)
{
	struct session *s = p->session;
	bool sent = true, extended = why == NOT_REFUSED && p->verb == VERB_EXTEND;

	if (extended && !p->permit && p->claim->state == CLAIM_HELD)
		record_held(x, p->claim); /* a client that is away may resume it after a restart */
	if (!s)
		return;
	TAILQ_REMOVE(&s->pendings, p, in_session);
	core_answers(x->core, p->verb);
	if (extended && p->permit)
		record_permit(x, p->permit);
	if (s->over)
		; /* nothing is sent any more */
	else if (p->verb == VERB_SHOW)
		sent = show_answer(x, s, p); /* else a copy of it is held back */
	else if (why == NOT_REFUSED && p->verb == VERB_BREAK)
		broken_answer(x, s, p);
	else if (why == NOT_REFUSED)
		pending_send_done(x, p);
	else
		deliver_refusal(x, s, span_of(p->tag), why);
	if (sent)
		session_answered(x->sessions, s, p->tag[0] != '\0');
}

static void deliver_one(struct request_context *x, const struct notice *n)
{
	switch (n->kind) {
	case NOTICE_GRANTED:
		deliver_granted(x, n->claim, n->count);
		break;
	case NOTICE_REENTERED:
		deliver_reentered(x, n->claim, n->count);
		break;
	case NOTICE_REFUSED:
		deliver_refused(x, n->claim, n->refusal);
		break;
	case NOTICE_FORGOTTEN:
		/* The name was granted anew before RESUME is answered: nothing else would report the loss to the client. */
		if (n->claim->state == CLAIM_LOST && n->claim->not_notified && !n->claim->session->detached)
			send_lost(x, n->claim);
		if (n->claim->state == CLAIM_HELD)
			watch(x, n->claim, WATCH_RELEASED);
		record_freed(x, n->claim);
		TAILQ_REMOVE(&n->claim->session->claims, n->claim, in_session);
		n->claim->session->held--;
		request_context_let_go(x, n->claim->session);
		session_wake(x->sessions, n->claim->session);
		break;
	case NOTICE_LENGTHENS:
		record_held(x, n->claim);
		break;
	case NOTICE_ADOPTED:
		deliver_adopted(x, n->claim);
		break;
	case NOTICE_LOST:
		deliver_lost(x, n->claim);
		session_wake(x->sessions, n->claim->session);
		break;
	case NOTICE_WAITING:
		if (n->claim->state == CLAIM_WAITING) /* else it was granted meanwhile */
			watch(x, n->claim, WATCH_WAITING);
		watch_send_contended(x, n->claim->lock);
		break;
	case NOTICE_WANTED:
		watch_send_contended(x, n->claim->lock);
		break;
	case NOTICE_RISK:
		deliver_validity(x, n->claim, "! RISK", "left_ms");
		break;
	case NOTICE_SAFE:
		deliver_validity(x, n->claim, "! SAFE", "valid_ms");
		break;
	case NOTICE_EXTENDED:
	case NOTICE_RELEASED:
	case NOTICE_SEEN:
		deliver_pending(x, n->pending, n->refusal);
		break;
	}
}

/* A notice about a part of a group, or about a claim of a permit, is not sent to a client as such. False: it is about neither. */
static bool __attribute__((noinline)) deliver_to_agent(struct request_context *x, const struct notice *n, const struct session *agent)
{
	if (agent->of_permit) {
		permits_on_notice(x, n);
		return true;
	}
	return n->claim && group_on_notice(x, n);
}

static inline bool deliver_within(struct request_context *x, const struct notice *n)
{
	const struct session *s = n->claim ? n->claim->session : n->pending ? n->pending->session : NULL;

	return s && s->principal && deliver_to_agent(x, n, s);
}

void deliver_notices(struct request_context *x)
{
	for (size_t i = 0; i < x->engine->notices.count; i++) {
		const struct notice n = x->engine->notices.item[i];

		if (!deliver_within(x, &n))
			deliver_one(x, &n);
		notices_delivered(&x->engine->notices, &n);
	}
	x->engine->notices.count = 0;
}

#define HEARTBEAT_LEAST_US (10 * MSEC)

static void command_ok(struct request_context *x, struct session *s)
{
	char *line = session_line(x->sessions);
	struct reply r;

	reply_begin(&r, line, x->request.tag, "OK");
	session_send(x->sessions, s, line, reply_end(&r));
}

static bool grace_is_allowed(struct request_context *x, struct session *s)
{
	int64_t most = x->core->conf.max_grace_us;

	if (!request_has(&x->request, FIELD_GRACE) || x->request.field[FIELD_GRACE].number <= most)
		return true;
	send_invalid(x, s, ERROR_LIMIT, "grace may be at most %" PRId64 "ms (max_grace)", most / MSEC);
	return false;
}

/* The journal gets everything that the session has, but only once: a session that gives up its grace may ask for it again any number of times. */
static void session_set_grace(struct request_context *x, struct session *s)
{
	bool was = s->known;

	if (request_has(&x->request, FIELD_GRACE))
		s->grace_us = x->request.field[FIELD_GRACE].number;
	session_set_known(x->sessions, s, was || s->grace_us > 0);
	if (was)
		record_session(x, s);
	else
		record_all_of(x, s);
}

static void serve_HELLO(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	char *line, *secret;
	struct reply r;

	if (!span_equal(q->word[0], SPAN("1"))) {
		send_invalid(x, s, ERROR_ARG, "this server speaks protocol version 1 only: HELLO 1");
		return;
	}
	if (request_has(q, FIELD_HEARTBEAT) && q->field[FIELD_HEARTBEAT].number > 0 &&
	    q->field[FIELD_HEARTBEAT].number < HEARTBEAT_LEAST_US) {
		send_invalid(x, s, ERROR_ARG, "heartbeat must be at least 10ms, or 0 for none");
		return;
	}
	if (!grace_is_allowed(x, s))
		return;
	s->hello_fields |= q->given;
	if (request_has(q, FIELD_NAME))
		session_set_label(s, q->field[FIELD_NAME].text);
	if (request_has(q, FIELD_HEARTBEAT)) {
		s->heartbeat_us = q->field[FIELD_HEARTBEAT].number;
		heap_cancel(&x->core->timers, &s->timer);
		session_touch(x->sessions, s);
	}
	secret = session_lasting(x->sessions, s)->secret;
	if (!secret[0])
		rng_hex(&x->core->rng, secret, 32);
	session_set_grace(x, s);
	line = session_line(x->sessions);
	reply_begin(&r, line, q->tag, "OK");
	reply_int(&r, "proto", PROTO_VERSION);
	reply_text(&r, "server", SPAN("redlockd/" REDLOCKD_VERSION));
	reply_int(&r, "session", (int64_t)s->serial);
	reply_text(&r, "secret", span_of(secret));
	reply_text(&r, "store", span_of(x->core->conf.store));
	reply_int(&r, "nodes", x->core->conf.nodes);
	reply_int(&r, "quorum", quorum_of(x->core->conf.nodes));
	reply_ms(&r, "lease_ms", x->core->conf.lease_us);
	reply_ms(&r, "max_lease_ms", x->core->conf.max_lease_us);
	reply_ms(&r, "max_keep_ms", x->core->conf.max_keep_us);
	reply_ms(&r, "max_grace_ms", x->core->conf.max_grace_us);
	session_send(x->sessions, s, line, reply_end(&r));
}

static void serve_QUIT(struct request_context *x, struct session *s)
{
	command_ok(x, s);
	session_hang_up(x->sessions, s, "quit");
	session_end(x, s, ENDING_QUIT);
}

static void serve_CANCEL(struct request_context *x, struct session *s)
{
	struct span tag = {x->request.word[0].p + 1, x->request.word[0].n - 1}; /* the parser has checked that it is one */
	struct claim *c = session_waiting(s, tag);
	struct lock *l = c ? c->lock : NULL;
	struct bid *b = bid_waiting(s, tag);
	struct rate_turn *turn = rate_turn_waiting(s, tag);

	if (!c && !b && !turn) {
		send_error(x, s, x->request.tag, ERROR_NOTFOUND, "no request waits under @%.*s", (int)tag.n, tag.p);
		return;
	}
	command_ok(x, s);
	if (turn) {
		rate_turn_cancel(x, turn);
	} else if (b && b->kind == BID_TAKE) {
		take_cancel(x, take_of_bid(b));
	} else if (b) {
		bid_withdraw(x, b);
	} else {
		wait_withdraw(x->engine, c, REFUSED_CANCELLED);
		convert_look(x->engine, l);
	}
}

static void serve_PING(struct request_context *x, struct session *s)
{
	command_ok(x, s);
}

static void (*const serve[VERB_N])(struct request_context *x, struct session *s) = {
#define COMMAND(id, ...) [VERB_##id] = serve_##id,
#include "proto/command.def"
#undef COMMAND
};

/* --- lines that are no requests --- */

static void command_ends(struct request_context *x, struct session *s, const char *reason)
{
	session_ended(x->sessions, s, reason);
	session_hang_up(x->sessions, s, reason);
	s->over = true;
}

/* A browser sends the content of a web page to any port. So a greeting of another protocol ends the connection, and nothing after it is executed. */
static void command_foreign(struct request_context *x, struct session *s, enum foreign foreign)
{
	if (foreign == FOREIGN_HTTP) { /* the layer that hangs up sends an answer in HTTP */
		command_ends(x, s, HANGUP_HTTP);
		return;
	}
	send_error(x, s, SPAN(""), ERROR_SYNTAX, "this port speaks the line protocol of redlock-protocol(7), not %s: hanging up", foreign_name(foreign));
	command_ends(x, s, "other-protocol");
}

/*
 * Over a network the first line must be a request, because the first line of a browser never is. People type at the Unix socket, which browsers cannot reach.
 */
static bool command_must_end(const struct request_context *x, const struct session *s)
{
	return !s->is_unix && !s->proven && (x->request.verb == VERB_N || x->parse_error.code == ERROR_SYNTAX);
}

/* x->parse_error says what is wrong. */
static void command_invalid(struct request_context *x, struct session *s, struct input line)
{
	enum foreign foreign = s->is_unix ? FOREIGN_NONE : foreign_of(line.p, line.n);

	x->core->serving = x->core->answers = VERB_OTHER;
	if (foreign != FOREIGN_NONE) {
		command_foreign(x, s, foreign);
	} else if (command_must_end(x, s)) {
		send_error(x, s, x->request.tag, x->parse_error.code, "%s; the first line of a connection must be a request: hanging up", x->parse_error.text);
		metric_add(&x->core->metrics, METRIC_MISTAKES, 1);
		command_ends(x, s, "no-request");
	} else {
		s->proven = true;
		send_invalid(x, s, x->parse_error.code, "%s", x->parse_error.text);
	}
}

static void command_too_long(struct request_context *x, struct session *s, struct input line)
{
	enum parse_outcome outcome = request_parse(line.p, line.n, &x->request, &x->parse_error);

	x->core->serving = x->core->answers = VERB_OTHER;
	if (outcome == PARSE_HTTP) {
		command_foreign(x, s, FOREIGN_HTTP);
		return;
	}
	x->parse_error.code = ERROR_TOOLONG;
	snprintf(x->parse_error.text, sizeof(x->parse_error.text), "a line has at most %" PRIu64 " bytes, its end included", x->core->conf.limits.line);
	if (outcome == PARSE_EMPTY) /* a comment */
		send_invalid(x, s, x->parse_error.code, "%s", x->parse_error.text);
	else
		command_invalid(x, s, line);
}

/* Whether something is in flight under this tag. */
static bool tag_is_in_use(const struct session *s, struct span tag)
{
	const struct pending *p;
	const struct listing *l;

	if (s->waiting > 0 && (session_waiting(s, tag) || bid_waiting(s, tag)))
		return true;
	if (s->resuming && span_equal(span_of(s->lasting->resume_tag), tag))
		return true;
	TAILQ_FOREACH(p, &s->pendings, in_session) {
		if (span_equal(span_of(p->tag), tag))
			return true;
	}
	TAILQ_FOREACH(l, &s->listings, in_session) {
		if (span_equal(span_of(l->tag), tag))
			return true;
	}
	return false;
}

/* A web page can choose the method, the path, and a name that resolves to this host: "DEFER /jobs HTTP/1.1" would be a request. */
static bool command_begins_foreign(struct request_context *x, struct session *s, struct input line)
{
	enum foreign foreign = s->proven || s->is_unix ? FOREIGN_NONE : foreign_of(line.p, line.n);

	if (foreign == FOREIGN_NONE)
		return false;
	x->request.tag = SPAN("");
	x->core->serving = x->core->answers = VERB_OTHER;
	command_foreign(x, s, foreign);
	return true;
}

static void lose_if_over(struct request_context *x, struct lock *l)
{
	if (l && l->lease.state == LEASE_HELD && lock_is_over(&x->engine->table, l))
		lease_owner_expire(x->engine, &l->lease);
}

/* Some timers of ended leases may not have been handled yet. What the request may be about is lost before the request is served. False: its session is gone. */
static bool __attribute__((cold)) command_loses_over(struct request_context *x, struct session *s)
{
	const struct permit *p;

	for (unsigned i = 0; i < x->request.words; i++)
		lose_if_over(x, lock_find(&x->engine->table, x->request.word[i]));
	PERMITS_FOREACH(p, s)
		if (p->state == PERMIT_HELD)
			lose_if_over(x, p->slot.claim->lock);
	deliver_notices(x);
	return !s->over;
}

void command_line(struct request_context *x, struct session *s, struct input line)
{
	if (line.is_cut) {
		command_too_long(x, s, line);
		return;
	}
	if (command_begins_foreign(x, s, line))
		return;
	switch (request_parse(line.p, line.n, &x->request, &x->parse_error)) {
	case PARSE_EMPTY:
		return;
	case PARSE_ERROR:
		command_invalid(x, s, line);
		return;
	case PARSE_HTTP:
		command_foreign(x, s, FOREIGN_HTTP);
		return;
	case PARSE_OK:
		break;
	}
	x->core->serving = x->core->answers = x->request.verb;
	if (x->request.tag.n > 0 && tag_is_in_use(s, x->request.tag)) {
		send_invalid(x, s, ERROR_TAGINUSE, "a request with this tag is still in flight");
		return;
	}
	s->mistakes = 0;
	s->proven = true;
	if ((x->core->conf.rules || x->core->conf.users) && !access_is_granted(x, s))
		return;
	if (x->core->late && !command_loses_over(x, s))
		return;
	serve[x->request.verb](x, s);
}
