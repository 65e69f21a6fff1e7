/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests LOCK, UNLOCK, EXTEND and CHECK of a lock. */
#include "daemon/core/request/requests.h"

#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/deadlock/wait_graph.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/resume/resume.h"
#include "daemon/core/semaphore/permit.h"

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

/* UNLOCK with a count= above the count of the hold. */
static void send_count_above(struct request_context *x, struct session *s, unsigned has)
{
	send_invalid(x, s, ERROR_ARG, "count=%u, but this owner holds the lock %u times: UNLOCK lowers the count", request_count(&x->request), has);
}

/* The owner does not have the lock. For UNLOCK count=0 that is success. */
static void reply_not_held(struct request_context *x, struct session *s)
{
	if (!request_has(&x->request, FIELD_COUNT))
		send_error(x, s, x->request.tag, ERROR_NOTHELD, "this session does not hold the lock%s",
		           request_has(&x->request, FIELD_OWNER) ? " as this owner" : "");
	else if (request_count(&x->request) > 0)
		send_count_above(x, s, 0);
	else
		reply_unlocked(x, s, 0);
}

/* Returns the claim of this request's owner, which is held or lost. NULL: the request was answered. */
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
	send_error(x, s, x->request.tag, ERROR_LOST, "fence=%" PRId64 " reason=%s: lost before this request", c->token,
	           loss_word(c->loss));
}

static void claim_leave_session(struct session *s, struct claim *c)
{
	TAILQ_REMOVE(&s->claims, c, in_session);
	s->held--;
}

/*
 * Returns the claim for this UNLOCK: the latest grant, or a loss with the fence of the request, next to a grant of which the client does not know yet. NULL:
 * the request was answered.
 */
static struct claim *claim_of_fence(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct claim *c = claim_of_request(x, s), *loss;

	if (!c || !request_has(q, FIELD_FENCE) || q->field[FIELD_FENCE].number == c->token)
		return c;
	loss = lock_loss_of(c->lock, s, request_owner(q));
	if (loss && q->field[FIELD_FENCE].number == loss->token)
		return loss;
	send_error(x, s, q->tag, ERROR_NOTHELD,
	           "this session does not hold the grant with fence=%" PRId64 ", and nothing was released: its latest has fence=%" PRId64,
	           q->field[FIELD_FENCE].number, c->token);
	return NULL;
}

/* If there is a grant next to the loss, the next run takes the first FREED for the end of the grant. So the grant is recorded again after both. */
static void remember_acknowledged(struct request_context *x, const struct claim *loss)
{
	struct claim *latest = lock_claim_of(loss->lock, loss->session, claim_owner(loss));

	if (latest != loss)
		record_freed(x, latest);
	record_freed(x, loss);
	if (latest != loss)
		record_held(x, latest);
}

/* Returns the claim that this UNLOCK may end; NULL: the request was answered. */
static struct claim *claim_to_unlock(struct request_context *x, struct session *s)
{
	struct claim *c = claim_of_fence(x, s);

	if (!c)
		return NULL;
	if (c->state == CLAIM_HELD) {
		if (c->not_notified)
			claim_notified(x, c);
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
	send_invalid(x, s, ERROR_ARG, "keep= is for exclusive locks: UNLOCK a shared lock without it");
	return false;
}

/* Returns how many times the owner will hold it afterwards. */
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
		send_count_above(x, s, c->count);
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

/* Returns the claim if it is held; NULL: the request was answered. */
static struct claim *claim_held(struct request_context *x, struct session *s)
{
	struct claim *c = claim_of_request(x, s);

	if (c && c->state == CLAIM_LOST) {
		reply_lost(x, s, c);
		return NULL;
	}
	if (c && c->lock->lease.state == LEASE_ADOPTING) {
		send_adopting(x, s);
		return NULL;
	}
	if (c)
		claim_notified(x, c);
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
		send_error(x, s, x->request.tag, ERROR_LIMIT, "%d EXTENDs of this lock are under way: ask again when they are answered", EXTENDS_MOST);
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

static struct instant lock_wait_until(const struct request_context *x, int64_t wait)
{
	return wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(x->core->asked_at, wait);
}

static inline void claim_set_terms(struct request_context *x, struct claim *c)
{
	const struct request *q = &x->request;

	c->renew = request_is_renewed(q);
	c->ttl_us = request_has(q, FIELD_TTL) ? q->field[FIELD_TTL].number : x->core->conf.lease_us;
	c->delay_us = request_has(q, FIELD_DELAY) ? q->field[FIELD_DELAY].number : 0;
	c->shared = request_is_shared(q);
}

/*
 * s->waiting includes requests that do not wait for a holder. So the claims are counted only if it
 * exceeds the limit.
 */
bool waits_have_room(struct request_context *x, struct session *s)
{
	uint64_t most = x->core->conf.limits.waiting, n = 0;
	const struct claim *c;

	if (s->waiting < most)
		return true;
	TAILQ_FOREACH(c, &s->claims, in_session)
		n += c->state == CLAIM_WAITING && c->patient;
	if (n + bids_patient(s) < most)
		return true;
	send_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " waiting requests (limits.waiting)", most);
	return false;
}

/* True unless the owner holds the name already, or has lost it and asks for it again. */
static bool lock_is_new(struct request_context *x, const struct session *s)
{
	const struct lock *l = lock_find(&x->engine->table, x->request.word[0]);

	return !l || !lock_claim_of(l, s, request_owner(&x->request));
}

static inline bool lock_has_room(struct request_context *x, struct session *s)
{
	uint64_t bytes = x->request.word[0].n + NAME_BYTES;
	bool leaves = request_has(&x->request, FIELD_DELAY);

	return names_are_few(x, bytes, leaves) || !lock_is_new(x, s) || names_have_room(x, s, bytes, leaves);
}

static bool lock_within_limits(struct request_context *x, struct session *s, bool patient)
{
	const struct core_conf *conf = &x->core->conf;

	if (patient && !waits_have_room(x, s))
		return false;
	if (s->held + s->waiting < conf->limits.locks)
		return lock_has_room(x, s); /* even if all that it asked for is granted */
	if (!lock_is_new(x, s))
		return true;
	send_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " locks (limits.locks)", conf->limits.locks);
	return false;
}

/* From now on the claim waits for this request. */
static void lock_waits_again(struct request_context *x, struct claim *c, int64_t wait)
{
	const struct request *q = &x->request;

	request_keep_tag(q, c->asking->tag);
	claim_set_terms(x, c);
	claim_set_remark(c, request_remark(q));
	contender_set_count(contender_of_claim(c), c, request_count(q));
	c->session->busy |= q->tag.n == 0;
	wait_set_end(x->engine, c, lock_wait_until(x, wait));
	convert_look(x->engine, c->lock);
}

/* A LOCK that is repeated after RESUME gets its old place, or finds that it was granted. */
static bool lock_is_repeated(struct request_context *x, struct session *s, int64_t wait)
{
	const struct request *q = &x->request;
	struct claim *c;

	switch (resume_old_place(x, s, request_owner(q), request_is_shared(q), wait > 0, &c)) {
	case PLACE_TURN:
		send_granted(x, c, q->tag, c->count);
		watch_who_waits(x, c);
		return true;
	case PLACE_WAITS:
		lock_waits_again(x, c, wait);
		return true;
	case PLACE_NONE:
		break;
	}
	return false;
}

/* --- count= --- */

/* The owner relies on a hold that is lost. It must not get the lock as a new hold. */
static void send_lost_below(struct request_context *x, struct session *s, const struct claim *c)
{
	send_error(x, s, x->request.tag, ERROR_LOST,
	           "fence=%" PRId64 " reason=%s: lost before this request, so it cannot be locked once more; count=1 takes it anew",
	           c->token, loss_word(c->loss));
}

/* The hold is as the request wants it, or is made so at once, and no store is asked. False: it has to be counted up. */
static bool lock_has_count(struct request_context *x, struct claim *c, int64_t count)
{
	bool not_known_yet = c->not_notified;

	claim_notified(x, c);
	if (c->count != count)
		return false;
	send_granted(x, c, x->request.tag, c->count);
	if (not_known_yet)
		watch_who_waits(x, c);
	return true;
}

static struct claim *lock_waiting_with_count(struct request_context *x, const struct session *s)
{
	const struct request *q = &x->request;
	const struct lock *l = s->waiting > 0 ? lock_find(&x->engine->table, q->word[0]) : NULL;
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session)
		if (l && c->lock == l && c->state == CLAIM_WAITING && !c->not_notified && c->asking->count > 0 && c->patient &&
		    c->shared == request_is_shared(q) && span_equal(claim_owner(c), request_owner(q)))
			return c;
	return NULL;
}

/* The same request with count= waits already: this one takes its place, or gives the place up if it does not wait. */
static bool lock_takes_place(struct request_context *x, struct session *s, int64_t wait)
{
	struct claim *c = lock_waiting_with_count(x, s);

	if (!c)
		return false;
	if (wait == 0) {
		wait_withdraw(x->engine, c, REFUSED_CANCELLED);
		convert_look(x->engine, c->lock);
		return false;
	}
	send_replaced(x, s, span_of(c->asking->tag));
	lock_waits_again(x, c, wait);
	return true;
}

/* Applies count= to the hold that its owner has, or waits for. True: that answers the request, now or later. */
static bool lock_count_answers(struct request_context *x, struct session *s, int64_t wait)
{
	const struct request *q = &x->request;
	const struct lock *l = lock_find(&x->engine->table, q->word[0]);
	struct claim *c = l ? lock_claim_of(l, s, request_owner(q)) : NULL;
	bool held = c && c->state == CLAIM_HELD, converts = held && c->shared != request_is_shared(q);
	int64_t count = q->field[FIELD_COUNT].number, has = held ? c->count : 0;

	if (converts && c->shared)
		return false; /* the LOCK is refused */
	if (count > 1 && c && c->state == CLAIM_LOST)
		send_lost_below(x, s, c);
	else if (count == 0)
		send_invalid(x, s, ERROR_ARG, "count of LOCK is from 1: UNLOCK with count=0 gives the lock back");
	else if (count < has || (converts && count != has))
		send_invalid(x, s, ERROR_ARG, "count=%" PRId64 ", but this owner holds the lock %" PRId64 " times: %s", count, has,
		             converts ? "a change of the mode keeps the count" : "UNLOCK lowers the count");
	else if (count > has + 1)
		send_invalid(x, s, ERROR_ARG, "count=%" PRId64 ", but this owner holds the lock %" PRId64 " times: each LOCK adds one at most", count, has);
	else if (held && !converts && l->lease.state == LEASE_HELD)
		return lock_has_count(x, c, count);
	else
		return lock_takes_place(x, s, wait);
	return true;
}

/* --- */

static bool waits_in_other_mode(struct request_context *x, struct session *s, struct span name)
{
	struct span owner = request_owner(&x->request);
	bool shared = request_is_shared(&x->request);
	const struct lock *l = lock_find(&x->engine->table, name);
	const struct claim *c;

	if (group_in_other_mode(s, name, owner, shared))
		return true;
	if (!l || s->waiting == 0)
		return false;
	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_WAITING && c->lock == l && c->shared != shared && span_equal(claim_owner(c), owner))
			return true;
	}
	return false;
}

bool mode_is_free(struct request_context *x, struct session *s, struct span name)
{
	if (!waits_in_other_mode(x, s, name))
		return true;
	send_invalid(x, s, ERROR_ARG, "this owner waits for the lock in the other mode: CANCEL that request first, or use another owner");
	return false;
}

/* The hold is shared at once, because its owner asks for less than it has. Its count, fence and terms stay. */
static void lock_downgrade(struct request_context *x, struct claim *holder)
{
	convert_to_shared(x->engine, holder);
	if (holder->not_notified)
		claim_notified(x, holder);
	else
		record_held(x, holder);
	metric_add(&x->core->metrics, METRIC_REENTRIES, 1);
	send_granted(x, holder, x->request.tag, holder->count);
	watch_granted(x, holder);
}

/*
 * The owner holds the lock alone, and asks to share it. A shared lock is renewed and has no lock-delay, so the present hold must be such, too. While it is
 * being adopted it may be lost already. False: the owner does not hold it alone.
 */
static bool lock_is_downgraded(struct request_context *x, struct session *s)
{
	const struct lock *l = request_is_shared(&x->request) ? lock_find(&x->engine->table, x->request.word[0]) : NULL;
	struct claim *holder = l ? lock_holder_of(l, s, request_owner(&x->request)) : NULL;

	if (!holder || holder->shared)
		return false;
	if (!mode_is_allowed(x, s, x->request.word[0]))
		return true;
	if (!holder->renew || holder->delay_us > 0)
		send_invalid(x, s, ERROR_ARG, "this owner holds it with %s, which a shared lock cannot have: UNLOCK it, then LOCK it with mode=shared",
		             holder->renew ? "delay=" : "renew=no");
	else if (l->lease.state != LEASE_HELD)
		send_adopting(x, s);
	else
		lock_downgrade(x, holder);
	return true;
}

static struct claim *claim_of_lock_request(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct claim *c = claim_new(&x->engine->table);

	c->session = s;
	c->origin = s->origin;
	if (q->given & (UINT32_C(1) << FIELD_OWNER | UINT32_C(1) << FIELD_NOTE | UINT32_C(1) << FIELD_TRACE))
		claim_set_texts(c, request_owner(q), request_remark(q));
	claim_begin_asking(&x->engine->table, c);
	request_keep_tag(q, c->asking->tag);
	claim_set_terms(x, c);
	if (q->given & (UINT32_C(1) << FIELD_PRIORITY | UINT32_C(1) << FIELD_COUNT)) {
		c->priority = request_priority(q) & 15;
		c->asking->count = request_count(q);
	}
	c->patient = request_has(q, FIELD_WAIT) && q->field[FIELD_WAIT].number > 0;
	c->asking->asked_at = x->core->asked_at;
	c->asking->order = ++x->engine->asked;
	TAILQ_INSERT_TAIL(&s->claims, c, in_session);
	s->waiting++;
	return c;
}

/* Its owner may not have heard of a loss. Until it reads this refusal, it may rely on one more hold. */
static void lock_refused(struct request_context *x, const struct session *s)
{
	const struct lock *l = lock_find(&x->engine->table, x->request.word[0]);

	if (l && l->lease.state == LEASE_CLOSING)
		hold_ask_again(l, s, request_owner(&x->request));
}

/* The owner holds it, or may still hold it from the previous run. */
static bool lock_is_own(struct request_context *x, const struct session *s)
{
	const struct lock *l = lock_find(&x->engine->table, x->request.word[0]);

	return l && lock_holder_of(l, s, request_owner(&x->request));
}

/* Finds the last request of its owner that waits for this name in the same mode: see holders_fold(). */
static void lock_find_twin(struct request_context *x, struct claim *c, struct span name)
{
	const struct lock *l = lock_find(&x->engine->table, name);
	struct claim *at;

	for (at = l ? TAILQ_PREV(c, claims, in_session) : NULL; at; at = TAILQ_PREV(at, claims, in_session)) {
		if (at->state != CLAIM_WAITING || at->lock != l || at->shared != c->shared || !span_equal(claim_owner(at), claim_owner(c)))
			continue;
		claim_join_twins(c, at);
		return;
	}
}

void serve_LOCK(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;
	struct claim *c;

	if (!name_is_allowed(x, s) || !ttl_is_allowed(x, s) || !bound_is_kept(x, s, FIELD_DELAY, x->core->conf.max_delay_us, "max_delay") ||
	    !terms_suit_mode(x, s))
		return;
	if (s->resumed)
		resume_make_way(x, s);
	if (x->engine->draining && !lock_is_own(x, s)) {
		send_draining(x, s, q->tag);
		return;
	}
	if (request_has(q, FIELD_COUNT) && lock_count_answers(x, s, wait))
		return;
	if (lock_is_repeated(x, s, wait))
		return;
	if (lock_is_downgraded(x, s))
		return;
	if (!lock_within_limits(x, s, wait > 0) || !mode_is_allowed(x, s, q->word[0]) || (wait > 0 && local_circle_is_refused(x, s, q->word, 1))) {
		lock_refused(x, s);
		return;
	}
	c = claim_of_lock_request(x, s);
	if (s->waiting > 1)
		lock_find_twin(x, c, q->word[0]);
	s->busy |= q->tag.n == 0;
	lock_request_ask(x->engine, c, q->word[0], lock_wait_until(x, wait));
	if (wait > 0)
		deadlock_note(x, s);
}
