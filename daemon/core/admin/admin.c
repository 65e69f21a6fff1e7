/* SPDX-License-Identifier: BSD-2-Clause */
/* See admin.h. */
#include "daemon/core/admin/admin.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/resume/resume.h"
#include "daemon/core/semaphore/permit.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/jobs.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

/* How many requests are refused in a step. For each of them so many claims of further sessions may be looked at. Nothing is granted meanwhile. */
#define REFUSED_A_STEP  1024
#define LOOKS_A_REFUSAL 8
#define SLOTS_A_REFUSAL 8 /* slots that count as one refusal, when the first in line leaves their queues */

/* The same when new rules deny them. */
#define REVOKED_A_STEP  768
#define LOOKS_A_REVOCATION 4

/* Requests of an owner that holds the name are not refused. */
static bool refuse_claims(struct request_context *x, struct session *s, int64_t *left, int64_t *looks)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&s->claims); c; c = next, (*looks)++) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state != CLAIM_WAITING || lock_holder_of(c->lock, s, claim_owner(c)))
			continue;
		if (*left <= 0)
			return false;
		wait_withdraw(x->engine, c, REFUSED_DRAINING);
		(*left)--;
	}
	return true;
}

/* In names; slots: so many of those for which a permit asks count as one. */
static int64_t bid_names(struct bid *b, unsigned slots)
{
	return b->kind == BID_GROUP ? group_of_bid(b)->parts : 1 + permit_of_bid(b)->asked_n / slots;
}

/* The lock of a job is the concern of its TAKE. */
static bool bid_may_lock(const struct request_context *x, struct bid *b)
{
	const struct group *g = b->kind == BID_GROUP ? group_of_bid(b) : NULL;
	unsigned line;

	if (!g)
		return session_may_lock(x->core, b->session, permit_of_bid(b)->semaphore->name, &line);
	for (unsigned i = 0; i < g->parts && !g->take; i++)
		if (!session_may_lock(x->core, b->session, g->part[i].name, &line))
			return false;
	return true;
}

/* Groups and permits are answered before the step ends, and give back what they hold. denied: only those that the rules deny. names: adds those looked at. */
static bool refuse_compound(struct request_context *x, struct session *s, bool denied, int64_t *left, int64_t *names)
{
	for (struct bid *b = bid_first(s); b; b = bid_next(b)) {
		if (b->kind == BID_TAKE)
			continue;
		*names += bid_names(b, UINT_MAX);
		if (b->answered || b->withdrawn || (denied && bid_may_lock(x, b)))
			continue;
		if (*left <= 0)
			return false;
		*left -= bid_names(b, denied ? LOOKS_A_REVOCATION : SLOTS_A_REFUSAL);
		b->denied = denied;
		bid_withdraw(x, b);
	}
	return true;
}

/* False: some requests of the session remain. */
static bool refuse_waiting(struct session *s, void *context)
{
	struct walk_step *r = context;
	struct request_context *x = r->x;
	int64_t looks = 0, names = 0; /* in a drain the names cost nothing */

	if (s->over || s->refused)
		return true;
	if (r->left <= 0)
		return false;
	s->refused = takes_refuse(x, s, &r->left) && rate_turns_refuse(x, s, false, &r->left) &&
	             (s->waiting == 0 || (refuse_claims(x, s, &r->left, &looks) && refuse_compound(x, s, false, &r->left, &names)));
	r->left -= looks / LOOKS_A_REFUSAL;
	return s->refused;
}

/* True: since the last hold ended it has looked at all sessions, and nothing remains. */
static bool refuse_some(struct request_context *x)
{
	struct walk_step r = {x, core_portion(x->core, REFUSED_A_STEP)};

	if (x->drain.walk.slot == 0)
		x->drain.again = false;
	return session_table_walk(x->sessions, &x->drain.walk, core_portion(x->core, SESSIONS_A_STEP), refuse_waiting, &r) && !x->drain.again;
}

void drain_again(struct request_context *x)
{
	x->drain.more = !refuse_some(x);
	if (x->drain.more)
		request_context_again(x);
}

/*
 * Begins a drain, or changes its end. in_us: it ends after that time, even if something is held; negative: only when nothing is held. Refuses all requests for
 * something new, and notifies subscribers.
 */
static void drain_begin(struct request_context *x, int64_t in_us)
{
	bool first = !x->engine->draining;

	x->engine->draining = true;
	x->core->metrics.value[METRIC_DRAINING] = 1;
	x->drain.over = false;
	x->drain.timer.kind = TIMER_DRAIN;
	heap_cancel(&x->core->timers, &x->drain.timer);
	if (in_us >= 0)
		heap_set(&x->core->timers, &x->drain.timer, instant_add(x->core->now, in_us));
	if (first)
		drain_again(x);
	watch_drain(x);
}

void drain_fired(struct request_context *x)
{
	x->drain.over = true;
}

static bool session_is_answered(const struct session *s)
{
	return s->over || (s->waiting == 0 && !s->resuming && TAILQ_EMPTY(&s->pendings));
}

/*
 * Whether no request waits for an answer of the stores: they answer soon, and then it is known whether something is held. LISTs are ignored, because a slow
 * client can delay them at will. Each call continues at the session at which the last one stopped. EVENT_STOP refuses requests that came after that, unless
 * they are answered by then.
 */
static bool sessions_are_answered(struct request_context *x)
{
	const struct session_table *t = x->sessions;

	for (unsigned left = SESSIONS_A_STEP; x->drain.looked < t->slots; x->drain.looked++, left--) {
		const struct session *s = t->slot[x->drain.look % t->slots];

		if (left == 0)
			return false;
		if (s && !session_is_answered(s)) {
			x->drain.looked = 0;
			return false;
		}
		x->drain.look = (x->drain.look + 1) % t->slots;
	}
	x->drain.looked = 0;
	return true;
}

bool drain_is_over(struct request_context *x)
{
	const struct engine *e = x->engine;

	if (!e->draining || e->stopping)
		return false;
	return x->drain.over || (e->held == 0 && TAILQ_EMPTY(&e->adopting) && x->jobs_at_stake == 0 &&
	                         sessions_are_answered(x));
}

static bool revoke_claims(struct request_context *x, struct session *s, int64_t *left, int64_t *looks)
{
	struct claim *c, *next;
	unsigned line;

	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state != CLAIM_WAITING)
			continue;
		(*looks)++;
		if (session_may_lock(x->core, s, lock_name(c->lock), &line))
			continue;
		if ((*left)-- <= 0)
			return false;
		wait_withdraw(x->engine, c, REFUSED_DENIED);
	}
	return true;
}

/* If a denied writer has left, the readers after it may continue. */
static void look_behind_denied(struct request_context *x)
{
	const struct notices *n = &x->engine->notices;

	for (size_t i = 0; i < n->count; i++)
		if (n->item[i].kind == NOTICE_REFUSED && n->item[i].refusal == REFUSED_DENIED)
			convert_look(x->engine, n->item[i].claim->lock);
}

/* False: some requests of the session were not checked. */
static bool revoke_session(struct session *s, void *context)
{
	struct walk_step *r = context;
	struct request_context *x = r->x;
	int64_t looks = 1;

	if (s->over || s->judged == x->revoke.rules)
		return true;
	if (r->left <= 0)
		return false;
	if (!takes_revoke(x, s, &r->left) || !rate_turns_refuse(x, s, true, &r->left) || !revoke_claims(x, s, &r->left, &looks) ||
	    !refuse_compound(x, s, true, &r->left, &looks))
		return false;
	r->left -= looks / LOOKS_A_REVOCATION;
	s->judged = x->revoke.rules;
	return true;
}

void revoke_again(struct request_context *x)
{
	struct walk_step r = {x, core_portion(x->core, REVOKED_A_STEP)};

	x->revoke.more = !session_table_walk(x->sessions, &x->revoke.walk, core_portion(x->core, SESSIONS_A_STEP), revoke_session, &r);
	look_behind_denied(x);
	if (x->revoke.more)
		request_context_again(x);
}

void revoke_waiting(struct request_context *x)
{
	x->revoke.rules++;
	x->revoke.walk = (struct session_walk){0};
	revoke_again(x);
}

/* What is taken from a holder by force is granted to others only when that holder can no longer rely on it. Its client may be alive. */

/* False: the request was answered. */
static bool admin_is_allowed(struct request_context *x, struct session *s)
{
	if (s->is_admin || x->core->conf.rules) /* the rules have decided that already */
		return true;
	send_error(x, s, x->request.tag, ERROR_DENIED,
		   "%s is for root, the user of the daemon and the group redlock-admin, over the Unix socket", command_table[x->request.verb].word);
	return false;
}

/* field, value: for the log. name, victim: for the audit log; "" and 0 if there is no name or no session. */
static void admin_log(struct request_context *x, const struct session *by, const char *event, const char *field, const char *value, struct span name,
		      uint64_t victim)
{
	const struct audit a = {.event = event, .session = by, .name = name, .held_us = -1, .victim = victim};
	char who[WHO_MAX];

	if (x->core->conf.audit)
		audit_write(x->core, &a);
	core_log(x->core, LOG_NOTICE, event, "%s%s by=%s", field, value, core_quoted(x->core, (struct span){who, session_who(by, who)}));
}

/* --- DRAIN --- */

void serve_DRAIN(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	bool bounded = request_has(q, FIELD_IN);
	char text[32] = "forever";
	struct reply r;

	if (!admin_is_allowed(x, s))
		return;
	if (bounded)
		snprintf(text, sizeof(text), "%" PRId64, q->field[FIELD_IN].number / MSEC);
	admin_log(x, s, "drain", bounded ? "in_ms=" : "in=", text, SPAN(""), 0);
	drain_begin(x, bounded ? q->field[FIELD_IN].number : -1);
	reply_begin(&r, session_line(x->sessions), q->tag, "OK");
	reply_int(&r, "locks", x->engine->held);
	reply_drain_end(x, &r);
	send_line(x, s, &r);
}

/* --- KILL --- */

/* Finds a session by its number. One without grace is in no table, so all are searched. NULL: none. */
static struct session *session_of_number(const struct session_table *t, uint64_t serial)
{
	struct session *s;

	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i] && t->slot[i]->serial == serial && !t->slot[i]->over)
			return t->slot[i];
	TAILQ_FOREACH(s, &t->detached, lasting->in_detached)
		if (s->serial == serial)
			return s;
	return NULL;
}

static unsigned session_holds(const struct session *s)
{
	const struct claim *c;
	const struct permit *p;
	const struct job *job;
	unsigned n = 0;

	TAILQ_FOREACH(c, &s->claims, in_session)
		n += c->state == CLAIM_HELD;
	PERMITS_FOREACH(p, s)
		n += p->state == PERMIT_HELD;
	LIST_FOREACH(job, &s->jobs, in_session)
		n += job_is_had(job);
	return n;
}

/* Nobody can resume it any more, not even in the next run. */
static void session_void_grace(struct request_context *x, struct session *s)
{
	record_over(x, s);
	session_set_known(x->sessions, s, false);
	s->grace_us = 0;
}

/* Reports each loss to its client. After these notices, hangup_if_due() hangs up. */
static void kill_connected(struct request_context *x, struct session *s)
{
	session_loses_all(x, s, LOSS_BROKEN);
	s->killed = true;
	s->ahead.count = 0; /* lines that it has sent are not served */
	session_answered(x->sessions, s, false);
}

void serve_KILL(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	char number[32];
	struct session *victim;
	struct reply r;

	if (!admin_is_allowed(x, s))
		return;
	victim = session_of_number(x->sessions, (uint64_t)q->field[FIELD_SESSION].number);
	if (!victim) {
		send_error(x, s, q->tag, ERROR_NOTFOUND, "this daemon has no session of that number: LIST sessions shows them");
		return;
	}
	snprintf(number, sizeof(number), "%" PRIu64, victim->serial);
	admin_log(x, s, "kill", "session=", number, SPAN(""), victim->serial);
	reply_begin(&r, session_line(x->sessions), q->tag, "OK");
	reply_int(&r, "session", (int64_t)victim->serial);
	reply_int(&r, "n", session_holds(victim));
	send_line(x, s, &r);
	session_void_grace(x, victim);
	if (victim->detached)
		session_end(x, victim, ENDING_UNSURE);
	else
		kill_connected(x, victim);
}

/* --- BREAK --- */

#define NEVER_FREE_US (-1) /* the key never expires */

static void reply_broken(struct request_context *x, struct session *s, struct span tag, struct span name, int64_t free_in_us)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_text(&r, "name", name);
	if (free_in_us < 0)
		reply_int(&r, "free_in_ms", -1);
	else
		reply_ms(&r, "free_in_ms", free_in_us > 0 ? free_in_us + MSEC - 1 : 0);
	send_line(x, s, &r);
}

/* Returns for how long this daemon keeps the name from others: its last holder may still rely on it, or had a lock-delay. */
static int64_t lock_kept_us(const struct request_context *x, const struct lock *l)
{
	return l->lease.state == LEASE_CLOSING ? instant_diff(lock_close_at(l), x->core->now) + l->lease.delay_us : 0;
}

/* Only this daemon has it, or keeps it free because of its last holder. */
static void break_here(struct request_context *x, struct session *s, struct lock *l)
{
	if (l->holder)
		hold_lose(x->engine, l, LOSS_BROKEN);
	reply_broken(x, s, x->request.tag, lock_name(l), lock_kept_us(x, l));
}

void serve_BREAK(struct request_context *x, struct session *s)
{
	struct span name = x->request.word[0];
	struct lock *l = lock_find(&x->engine->table, name);
	struct pending *p;
	bool here = l && l->holder;

	if (!admin_is_allowed(x, s) || !pendings_within_limit(x, s))
		return;
	admin_log(x, s, "break", "name=", core_quoted(x->core, name), name, 0);
	if (l && l->lease.state != LEASE_NONE && !l->lease.shared) {
		break_here(x, s, l);
		return;
	}
	if (here)
		hold_lose(x->engine, l, LOSS_BROKEN); /* readers of other daemons may have it as well */
	p = pending_of_request(x, s, lock_find_or_add(&x->engine->table, name));
	p->broken = here;
	break_begin(x->engine, p);
}

void broken_answer(struct request_context *x, struct session *s, const struct pending *p)
{
	int64_t here = lock_kept_us(x, p->lock), there = p->free ? 0 : p->elsewhere.pttl_ms * MSEC;

	if (p->free && !p->broken && here <= 0)
		send_error(x, s, span_of(p->tag), ERROR_NOTFOUND, "nobody holds the lock; SHOW tells who has it now, if somebody took it meanwhile");
	else
		reply_broken(x, s, span_of(p->tag), lock_name(p->lock), there < 0 ? NEVER_FREE_US : here > there ? here : there);
}
