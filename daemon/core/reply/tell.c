/* SPDX-License-Identifier: BSD-2-Clause */
/* See tell.h. */
#include "daemon/core/reply/tell.h"

#include "daemon/core/engine/hold.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void tell_line(struct request_context *x, struct session *s, struct reply *r)
{
	if (s->over || s->detached) {
		core_answers(x->core, x->core->serving);
		return;
	}
	session_send(x->sessions, s, r->start, reply_end(r));
}

/* --- errors --- */

void tell_error(struct request_context *x, struct session *s, struct span tag, enum error code, const char *format, ...)
{
	char text[512];
	char *line = session_line(x->sessions);
	struct reply r;
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	reply_error(&r, line, tag, code, text);
	session_send(x->sessions, s, line, reply_end(&r));
}

void tell_replaced(struct request_context *x, struct session *s, struct span tag)
{
	tell_error(x, s, tag, ERROR_CANCELLED, "the same request was sent again, and waits instead of this one");
	session_answered(x->sessions, s, tag.n > 0);
}

const char *draining_text(const struct request_context *x)
{
	return x->engine->stopping ? "the daemon is stopping"
	                           : "the daemon drains: it grants nothing new, and stops when nobody holds anything; ask again when it is back";
}

void tell_draining(struct request_context *x, struct session *s, struct span tag)
{
	tell_error(x, s, tag, ERROR_DRAINING, "%s", draining_text(x));
}

void tell_crowded(struct request_context *x, struct session *s, struct span tag)
{
	bool all = origins_are_crowded(&x->sessions->origins, x->core->conf.limits.waiting);
	unsigned times = all ? CROWD_OF_ALL : CROWD_OF_PEER;

	tell_error(x, s, tag, ERROR_LIMIT, "%s may have at most %" PRIu64 " requests that wait, and holds beside others (%u times limits.waiting)",
	           all ? "all sessions together" : "the sessions of one peer", times * x->core->conf.limits.waiting, times);
}

void tell_adopting(struct request_context *x, struct session *s)
{
	tell_error(x, s, x->request.tag, ERROR_QUORUM,
	           "the daemon was restarted, and fewer than %u of %u stores have confirmed the lock since: ask again in a moment",
	           quorum_of(x->core->conf.nodes), x->core->conf.nodes);
}

void tell_revoked(struct request_context *x, struct session *s, struct span tag)
{
	metric_add(&x->core->metrics, METRIC_DENIED, 1);
	tell_error(x, s, tag, ERROR_DENIED, "the waiting request was withdrawn: the rules now deny this peer the right 'lock' here");
}

void reply_drain_end(const struct request_context *x, struct reply *r)
{
	if (x->engine->stopping || x->drain.over)
		reply_int(r, "in_ms", 0);
	else if (timer_is_set(&x->drain.timer))
		reply_ms(r, "in_ms", instant_diff(x->drain.timer.at, x->core->now));
	else
		reply_int(r, "in_ms", -1);
}

void tell_cycle(struct request_context *x, struct session *s, struct span tag, struct span cycle)
{
	struct reply r;

	metric_add(&x->core->metrics, METRIC_DEADLOCKS, 1);
	reply_begin(&r, session_line(x->sessions), tag, "ERR DEADLOCK");
	reply_text(&r, "cycle", cycle);
	tell_line(x, s, &r);
}

/* The line itself has its answer. */
static void tell_mistakes(struct request_context *x, struct session *s)
{
	char text[64], *line = session_line(x->sessions);
	struct reply r;

	snprintf(text, sizeof(text), "mistakes=%" PRIu64 " in a row: hanging up", x->core->conf.limits.mistakes);
	reply_error(&r, line, SPAN(""), ERROR_LIMIT, text);
	session_say(x->sessions, s, line, reply_end(&r));
}

void count_mistake(struct request_context *x, struct session *s)
{
	metric_add(&x->core->metrics, METRIC_MISTAKES, 1);
	if (++s->mistakes < x->core->conf.limits.mistakes || s->over)
		return;
	tell_mistakes(x, s);
	session_ended(x->sessions, s, "mistakes");
	session_hang_up(x->sessions, s, "mistakes");
	s->over = true;
}

void tell_mistake(struct request_context *x, struct session *s, enum error code, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	tell_error(x, s, x->request.tag, code, "%s", text);
	count_mistake(x, s);
}

/* --- what a session has --- */

void reply_grant(struct request_context *x, struct reply *r, struct claim *holder)
{
	reply_text(r, "name", lock_name(holder->lock));
	reply_int(r, "fence", holder->token);
	reply_ms(r, "valid_ms", lock_valid_us(&x->engine->table, holder->lock));
	holder->here = true;
}

void tell_granted(struct request_context *x, struct claim *holder, struct span tag, unsigned count)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_grant(x, &r, holder);
	reply_ms(&r, "ttl_ms", holder->lock->lease.ttl_us);
	reply_int(&r, "count", count);
	reply_mode(&r, holder);
	tell_line(x, holder->session, &r);
}

static void push_begin(struct request_context *x, struct reply *r, const struct claim *c, const char *word)
{
	reply_begin(r, session_line(x->sessions), SPAN(""), word);
	reply_text(r, "name", lock_name(c->lock));
	reply_int(r, "fence", c->token);
}

static void push_end(struct request_context *x, struct reply *r, const struct claim *c)
{
	if (c->owner_n > 0)
		reply_text(r, "owner", claim_owner(c));
	tell_line(x, c->session, r);
}

void tell_lost(struct request_context *x, struct claim *c)
{
	struct reply r;

	c->not_notified = false;
	push_begin(x, &r, c, "! LOST");
	reply_text(&r, "reason", span_of(loss_word(c->loss)));
	push_end(x, &r, c);
}

void claim_forget_loss(struct request_context *x, const struct claim *c)
{
	struct claim *loss = lock_loss_of(c->lock, c->session, claim_owner(c));

	if (!loss)
		return;
	if (loss->not_notified)
		tell_lost(x, loss);
	TAILQ_REMOVE(&loss->session->claims, loss, in_session);
	loss->session->held--;
	hold_forget(x->engine, loss);
}

void claim_hear_row(struct request_context *x, struct claim *c)
{
	if (!c->not_notified)
		return;
	c->not_notified = false;
	heap_cancel(&x->core->timers, &c->timer);
	record_held(x, c);
}

void claim_hear(struct request_context *x, struct claim *c)
{
	if (!c->not_notified)
		return;
	claim_forget_loss(x, c);
	claim_hear_row(x, c);
}

struct instant resume_repeat_until(const struct request_context *x, const struct session *s)
{
	int64_t lease = x->core->conf.lease_us;

	return instant_add(x->core->now, s->grace_us > lease ? s->grace_us : lease);
}

void claim_bound(struct request_context *x, struct claim *c, struct instant until)
{
	if (!timer_is_set(&c->timer) || instant_before(until, c->timer.at))
		heap_set(&x->core->timers, &c->timer, until);
}

void tell_validity(struct request_context *x, const struct claim *c, const char *word, const char *field)
{
	struct reply r;

	push_begin(x, &r, c, word);
	reply_ms(&r, field, lock_valid_us(&x->engine->table, c->lock));
	push_end(x, &r, c);
}
