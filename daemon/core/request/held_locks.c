/* SPDX-License-Identifier: BSD-2-Clause */
/* See held_locks.h. */
#include "daemon/core/request/held_locks.h"

#include "daemon/core/engine/engine.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/stored_limits.h"
#include "daemon/core/reply/former_holders.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/renewal_limits.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/reply/request_terms.h"
#include "daemon/core/reply/watch.h"

#include <inttypes.h>

static void reply_unlocked(struct request_context *x, struct session *s, unsigned count)
{
	char *line = session_line(x->sessions);
	struct reply r;

	reply_begin(&r, line, x->request.tag, "OK");
	reply_text(&r, "name", x->request.word[0]);
	reply_int(&r, "count", count);
	session_send(x->sessions, s, line, reply_end(&r));
}

/* UNLOCK count= above what the owner holds. */
static void tell_count_above(struct request_context *x, struct session *s, unsigned has)
{
	tell_mistake(x, s, ERROR_ARG, "count=%u, but this owner holds the lock %u times: UNLOCK lowers the count", request_count(&x->request), has);
}

/* The owner does not have the lock: UNLOCK count=0 wanted just that. */
static void reply_not_held(struct request_context *x, struct session *s)
{
	if (!request_has(&x->request, FIELD_COUNT))
		tell_error(x, s, x->request.tag, ERROR_NOTHELD, "this session does not hold the lock%s",
		           request_has(&x->request, FIELD_OWNER) ? " as this owner" : "");
	else if (request_count(&x->request) > 0)
		tell_count_above(x, s, 0);
	else
		reply_unlocked(x, s, 0);
}

/* The claim of this request's owner: held or lost. NULL: answered. */
static struct claim *claim_of_request(struct request_context *x, struct session *s)
{
	struct lock *l = lock_find(&x->engine->table, x->request.word[0]);
	struct claim *c = l ? lock_claim_of(l, s, request_owner(&x->request)) : NULL;

	if (!c)
		reply_not_held(x, s);
	return c;
}

static void reply_lost(struct request_context *x, struct session *s, const struct claim *c)
{
	tell_error(x, s, x->request.tag, ERROR_LOST, "fence=%" PRId64 " reason=%s: lost before this request", c->token,
	           loss_word(c->loss));
}

static void claim_leave_session(struct session *s, struct claim *c)
{
	TAILQ_REMOVE(&s->claims, c, in_session);
	s->held--;
}

/* What this UNLOCK is about: the latest grant; or, if it has that fence, a loss beside a turn that the client does not know yet. NULL: answered. */
static struct claim *claim_of_fence(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct claim *c = claim_of_request(x, s), *loss;

	if (!c || !request_has(q, FIELD_FENCE) || q->field[FIELD_FENCE].number == c->token)
		return c;
	loss = lock_loss_of(c->lock, s, request_owner(q));
	if (loss && q->field[FIELD_FENCE].number == loss->token)
		return loss;
	tell_error(x, s, q->tag, ERROR_NOTHELD,
	           "this session does not hold the grant with fence=%" PRId64 ", and nothing was released: its latest has fence=%" PRId64,
	           q->field[FIELD_FENCE].number, c->token);
	return NULL;
}

/* If a turn stands beside the loss, the next run takes the first FREED for the end of the turn. So the turn is recorded anew behind both. */
static void remember_acknowledged(struct request_context *x, const struct claim *loss)
{
	struct claim *latest = lock_claim_of(loss->lock, loss->session, claim_owner(loss));

	if (latest != loss)
		record_freed(x, latest);
	record_freed(x, loss);
	if (latest != loss)
		record_held(x, latest);
}

/* The claim that this UNLOCK may end; NULL: answered. */
static struct claim *claim_to_unlock(struct request_context *x, struct session *s)
{
	struct claim *c = claim_of_fence(x, s);

	if (!c)
		return NULL;
	if (c->state == CLAIM_HELD) {
		if (c->not_notified)
			claim_hear(x, c);
		return c;
	}
	reply_lost(x, s, c);
	if (request_has(&x->request, FIELD_COUNT) && s->grace_us > 0) {
		if (request_count(&x->request) == 0)
			hold_acknowledge_until(x->engine, c, &s->claims, resume_repeat_until(x, s));
		return NULL;
	}
	remember_acknowledged(x, c);
	claim_leave_session(s, c);
	hold_acknowledge(x->engine, c, &s->claims);
	return NULL;
}

static bool __attribute__((noinline)) keep_suits_mode(struct request_context *x, struct session *s, const struct claim *c)
{
	if (!c->shared)
		return true;
	tell_mistake(x, s, ERROR_ARG, "keep= is for exclusive locks: UNLOCK a shared lock without it");
	return false;
}

/* How often the owner is to hold it afterwards. */
static unsigned unlock_count(const struct request *q, const struct claim *c)
{
	return request_has(q, FIELD_COUNT) ? request_count(q) : c->count - 1;
}

void lock_unlock(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t keep = request_has(q, FIELD_KEEP) ? q->field[FIELD_KEEP].number : 0;
	struct pending *p = NULL;
	struct claim *c;
	unsigned count;

	if (!bound_is_kept(x, s, FIELD_KEEP, x->core->conf.max_keep_us, "max_keep"))
		return;
	c = claim_to_unlock(x, s);
	if (!c || (keep > 0 && !keep_suits_mode(x, s, c)))
		return;
	count = unlock_count(q, c);
	if (count > c->count) {
		tell_count_above(x, s, c->count);
		return;
	}
	if (count > 0) {
		if (count < c->count) {
			c->count = count;
			record_held(x, c);
		}
		reply_unlocked(x, s, c->count);
		return;
	}
	if (keep > 0 && !kept_has_room(x, s, q->word[0].n + NAME_BYTES))
		return;
	record_freed(x, c);
	former(x, c, "released");
	watch(x, c, WATCH_RELEASED);
	claim_leave_session(s, c);
	if (request_has(q, FIELD_SYNC) && q->field[FIELD_SYNC].number)
		p = pending_of_request(x, s, c->lock);
	else
		reply_unlocked(x, s, 0);
	hold_unlock(x->engine, c, keep, p);
	request_context_let_go(x, s);
	session_wake(x->sessions, s); /* its RESUME may wait for the adoption of this lock */
}

/* The claim if it is held; NULL: answered. */
static struct claim *claim_held(struct request_context *x, struct session *s)
{
	struct claim *c = claim_of_request(x, s);

	if (c && c->state == CLAIM_LOST) {
		reply_lost(x, s, c);
		return NULL;
	}
	if (c && c->lock->lease.state == LEASE_ADOPTING) {
		tell_adopting(x, s);
		return NULL;
	}
	if (c)
		claim_hear(x, c);
	return c;
}

void lock_extend(struct request_context *x, struct session *s)
{
	struct claim *c;

	if (!ttl_is_allowed(x, s))
		return;
	c = claim_held(x, s);
	if (!c || !pendings_within_limit(x, s))
		return;
	if (!engine_may_extend(c->lock)) {
		tell_error(x, s, x->request.tag, ERROR_LIMIT, "%d EXTENDs of this lock are under way: ask again when they are answered", EXTENDS_MOST);
		return;
	}
	if (request_has(&x->request, FIELD_TTL))
		c->ttl_us = x->request.field[FIELD_TTL].number;
	engine_extend(x->engine, c, pending_of_request(x, s, c->lock));
}

void lock_check(struct request_context *x, struct session *s)
{
	struct claim *c;
	char *line;
	struct reply r;

	if (request_has(&x->request, FIELD_JOB)) {
		job_check(x, s);
		return;
	}
	c = claim_held(x, s);
	if (!c)
		return;
	line = session_line(x->sessions);
	reply_begin(&r, line, x->request.tag, "OK");
	reply_grant(x, &r, c);
	reply_int(&r, "count", c->count);
	reply_mode(&r, c);
	session_send(x->sessions, s, line, reply_end(&r));
}
