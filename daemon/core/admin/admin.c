/* SPDX-License-Identifier: BSD-2-Clause */
/* See admin.h. What is taken from a holder by force goes to nobody else before that holder cannot rely on it any more: its client may be alive. */
#include "daemon/core/admin/admin.h"

#include "daemon/core/admin/drain.h"
#include "daemon/core/engine/break.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/job/job.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/resume/session_end.h"
#include "daemon/core/semaphore/permits.h"
#include "daemon/core/session/audit.h"

#include <inttypes.h>
#include <stdio.h>

/* False: answered. */
static bool admin_is_allowed(struct request_context *x, struct session *s)
{
	if (s->is_admin || x->core->conf.rules) /* rules have decided already */
		return true;
	tell_error(x, s, x->request.tag, ERROR_DENIED,
		   "%s is for root, the user of the daemon and the group redlock-admin, over the Unix socket", command_table[x->request.verb].word);
	return false;
}

/* field, value: for the log. name, victim: for the audit log; "" and 0 if it concerns no name and no session. */
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
	tell_line(x, s, &r);
}

/* --- KILL --- */

/* By its number; a session without grace is in no table of numbers. NULL: none. */
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
	TAILQ_FOREACH(p, &s->permits, in_session)
		n += p->state == PERMIT_HELD;
	LIST_FOREACH(job, &s->jobs, in_session)
		n += job_is_had(job);
	return n;
}

/* Nobody resumes it any more, not even in the next run. */
static void session_void_grace(struct request_context *x, struct session *s)
{
	record_over(x, s);
	session_set_known(x->sessions, s, false);
	s->grace_us = 0;
}

/* Its client is told each loss, and then hung up on: hangup_settle() does that, behind the notices. */
static void kill_connected(struct request_context *x, struct session *s)
{
	session_loses_all(x, s, LOSS_BROKEN);
	s->killed = true;
	s->ahead.count = 0; /* what it has sent is not served */
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
		tell_error(x, s, q->tag, ERROR_NOTFOUND, "this daemon has no session of that number: LIST sessions shows them");
		return;
	}
	snprintf(number, sizeof(number), "%" PRIu64, victim->serial);
	admin_log(x, s, "kill", "session=", number, SPAN(""), victim->serial);
	reply_begin(&r, session_line(x->sessions), q->tag, "OK");
	reply_int(&r, "session", (int64_t)victim->serial);
	reply_int(&r, "n", session_holds(victim));
	tell_line(x, s, &r);
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
	tell_line(x, s, &r);
}

/* How long this daemon keeps the name from others: its last holder may still believe, or had a lock-delay. */
static int64_t lock_kept_us(const struct request_context *x, const struct lock *l)
{
	return l->lease.state == LEASE_CLOSING ? instant_diff(lock_close_at(l), x->core->now) + l->lease.delay_us : 0;
}

/* This daemon alone has it, or leaves it alone for its last holder. */
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
		tell_error(x, s, span_of(p->tag), ERROR_NOTFOUND, "nobody holds the lock; SHOW tells who has it now, if somebody took it meanwhile");
	else
		reply_broken(x, s, span_of(p->tag), lock_name(p->lock), there < 0 ? NEVER_FREE_US : here > there ? here : there);
}
