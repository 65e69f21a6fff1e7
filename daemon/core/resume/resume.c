/* SPDX-License-Identifier: BSD-2-Clause */
/* See resume.h. */
#include "daemon/core/resume/resume.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/rights/rights.h"
#include "daemon/core/semaphore/permit.h"

#include <inttypes.h>

void sessions_free_all(struct request_context *x)
{
	for (uint32_t i = 0; i < x->sessions->slots; i++) {
		if (!x->sessions->slot[i])
			continue;
		lists_drop(x, x->sessions->slot[i]);
		watch_drop(x, x->sessions->slot[i]);
	}
	news_free(x);
	heap_cancel(&x->core->timers, &x->again);
	takes_free_all(x);
	rate_lines_free_all(x);
	jobs_free_all(x);
	surveys_free_all(x);
	groups_free_all(x);
	semaphores_free_all(x);
}

static void drop_pendings(struct request_context *x, struct session *s)
{
	struct pending *p;

	while ((p = TAILQ_LAST(&s->pendings, pendings))) { /* last to first: otherwise the turn of one RATE would pass to another of this session */
		TAILQ_REMOVE(&s->pendings, p, in_session);
		p->session = NULL;
		if (p->turn)
			rate_turn_drop(x, p->turn);
		else if (p->auth)
			auth_drop(x, p->auth);
	}
}

/* Returns until when the client may rely on what it held or has lost. A client that is certainly gone, or has ended the session, relies on nothing. */
static struct instant session_relies_until(const struct session *s, const struct claim *c, enum ending how)
{
	if (how != ENDING_UNSURE)
		return INSTANT_PAST;
	return s->detached && c->state == CLAIM_HELD ? c->relied_until : INSTANT_NEVER;
}

/* When a claim leaves a queue, others may be granted, and when a reader leaves, others are notified. That must not concern claims of this session. */
static void session_claims_are_ending(struct session *s)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session)
		c->ending = true;
	for (struct bid *b = bid_first(s); b; b = bid_next(b))
		if (b->kind != BID_TAKE)
			bid_is_ending(b);
}

static void session_drop_claims(struct request_context *x, struct session *s, bool waiting, enum ending how)
{
	struct claim *c, *next;

	groups_end(x, s, waiting);
	permits_end(x, s, waiting, how != ENDING_UNSURE);
	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if ((c->state == CLAIM_WAITING) != waiting)
			continue;
		TAILQ_REMOVE(&s->claims, c, in_session);
		if (c->state == CLAIM_HELD) {
			former(x, c, how == ENDING_QUIT ? "quit" : "session");
			watch(x, c, WATCH_RELEASED);
		}
		if (how == ENDING_QUIT && c->state == CLAIM_HELD)
			hold_unlock(x->engine, c, 0, NULL);
		else
			hold_abandon(x->engine, c, session_relies_until(s, c, how));
	}
}

void session_loses_all(struct request_context *x, struct session *s, enum loss why)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state == CLAIM_HELD)
			hold_lose_one(x->engine, c, why);
	}
	/* A claim that waits to hold a lock once more, by count=, must not get the lock as a new hold. */
	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state == CLAIM_WAITING && c->asking->count > 1 && lock_loss_of(c->lock, s, claim_owner(c)))
			wait_withdraw(x->engine, c, REFUSED_LOST);
	}
	permits_lose(x, s, why);
	jobs_lose(x, s, why);
}

void session_end(struct request_context *x, struct session *s, enum ending how)
{
	/* Waiting claims go first: a lock that is freed must not be granted to one of them. */
	s->over = true;
	watch_drop(x, s);
	record_over(x, s);
	session_claims_are_ending(s);
	takes_end(x, s);
	jobs_end(x, s, how != ENDING_UNSURE);
	session_drop_claims(x, s, true, how);
	session_drop_claims(x, s, false, how);
	drop_pendings(x, s);
	lists_drop(x, s);
	session_close(x->sessions, s);
}

/* --- with grace --- */

/* If too many sessions are detached, of all peers or of one, a session with a claim takes the place of one without. */
static bool session_may_detach(struct request_context *x, const struct session *s)
{
	uint64_t most = x->core->conf.limits.detached;
	bool peer_is_full = !session_is_owner(x->core, s) && s->origin->detached >= (most + 1) / 2;
	struct session *vacant = session_is_empty(s) ? NULL : TAILQ_FIRST(peer_is_full ? &s->origin->vacant : &x->sessions->vacant);

	if (s->grace_us == 0)
		return false;
	if (most == 0 || (!peer_is_full && x->sessions->detached_count < most))
		return true;
	session_ended(x->sessions, vacant ? vacant : s, "too-many-detached");
	if (vacant)
		session_end(x, vacant, ENDING_UNSURE);
	return vacant;
}

static void claim_detach(struct request_context *x, struct claim *c)
{
	struct session *s = c->session;

	c->here = false;
	if (c->state == CLAIM_WAITING) {
		c->asking->tag[0] = '\0';
		s->waits_not_notified += !c->not_notified;
		c->not_notified = true;
		if (c->patient && timer_is_set(&c->timer))
			heap_set(&x->core->timers, &c->timer, c->asking->wait_until); /* claim_bound() may have made it earlier */
	} else if (c->state == CLAIM_HELD) {
		heap_cancel(&x->core->timers, &c->timer);
		c->contended_at = (struct instant){0};
		if (c->lock->lease.state == LEASE_HELD)
			c->relied_until = c->not_notified ? INSTANT_PAST : validity_of(x->engine, c);
	} else if (c->acknowledged) {
		heap_cancel(&x->core->timers, &c->timer); /* the UNLOCK may be repeated after RESUME */
	}
}

/* Detaches a session with grace. Its grace begins. */
static void leave_connection(struct request_context *x, struct session *s)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session)
		claim_detach(x, c);
	takes_detach(x, s);
	jobs_detach(s);
	groups_detach(x, s);
	permits_detach(x, s);
	drop_pendings(x, s);
	lists_drop(x, s);
	watch_drop(x, s);
	session_detach(x->sessions, s);
	heap_set(&x->core->timers, &s->lasting->grace, instant_add(x->core->now, s->grace_us));
}

void session_end_connection(struct request_context *x, struct session *s, enum ending how)
{
	if (session_may_detach(x, s))
		leave_connection(x, s);
	else
		session_end(x, s, s->grace_us > 0 ? ENDING_UNSURE : how); /* a client with grace may go on without a connection */
}

#define RESUME_WAIT_US (2 * SEC) /* how long RESUME waits for adoptions */

static bool claim_is_open(const struct claim *c)
{
	return c->state == CLAIM_HELD && c->lock->lease.state == LEASE_ADOPTING;
}

/* Counts the undecided adoptions. There may be hundreds of thousands, so session_wake() counts down from here. */
static unsigned session_count_open(struct session *s)
{
	const struct claim *c;

	s->open = jobs_open(s) + permits_open(s);
	TAILQ_FOREACH(c, &s->claims, in_session)
	s->open += claim_is_open(c);
	return s->open;
}

static void row_resumed(struct request_context *x, struct session *s, struct claim *c)
{
	struct reply r;

	claim_row_notified(x, c);
	reply_begin(&r, session_line(x->sessions), span_of(s->lasting->resume_tag), "*");
	reply_grant(x, &r, c);
	reply_int(&r, "count", c->count);
	reply_mode(&r, c);
	reply_owner(&r, claim_owner(c));
	session_send(x->sessions, s, r.start, reply_end(&r));
}

static void resume_send_rest(struct request_context *x, struct session *s)
{
	struct claim *c;

	s->lasting->repeat_until = resume_repeat_until(x, s);
	groups_bound(x, s, s->lasting->repeat_until);
	permits_bound(x, s, s->lasting->repeat_until);
	jobs_send_lost(x, s);
	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_LOST && c->not_notified)
			send_lost(x, c);
		else if (c->not_notified && !claim_is_open(c))
			claim_bound(x, c, s->lasting->repeat_until);
		else if (c->state == CLAIM_HELD && !c->not_notified)
			claim_forget_loss(x, c);
		else if (c->state == CLAIM_LOST && c->acknowledged)
			claim_bound(x, c, s->lasting->repeat_until);
	}
}

/* Answers RESUME with everything that is decided: a row for each lock that is held, the OK, and then what was lost meanwhile. */
static void resume_answer(struct request_context *x, struct session *s)
{
	size_t begin = s->unsent;
	int64_t n = 0, more = 0, open = jobs_open(s) + permits_open(s);
	struct claim *c;
	struct reply r;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		open += claim_is_open(c);
		if (c->state != CLAIM_HELD || c->lock->lease.state != LEASE_HELD)
			continue;
		if (lock_is_over(&x->engine->table, c->lock)) {
			lease_owner_expire(x->engine, &c->lock->lease); /* if this process was stopped, the timer of the lease may not have fired yet */
			continue;
		}
		if (rows_take_long(x, s->unsent - begin)) {
			more++;
			continue;
		}
		row_resumed(x, s, c);
		n++;
	}
	n += permits_send_rows(x, s, begin, &more);
	n += jobs_send_rows(x, s, begin, &more);
	core_answers(x->core, VERB_RESUME);
	reply_begin(&r, session_line(x->sessions), span_of(s->lasting->resume_tag), "OK");
	reply_int(&r, "session", (int64_t)s->serial);
	reply_int(&r, "n", n);
	if (more > 0)
		reply_int(&r, "more", more);
	if (open > 0)
		reply_int(&r, "open", open);
	session_send(x->sessions, s, r.start, reply_end(&r));
	resume_send_rest(x, s);
	TAILQ_FOREACH(c, &s->claims, in_session)
		watch_who_waits(x, c);
}

static void resume_finish(struct request_context *x, struct session *s)
{
	bool returns = s->returns;

	s->resuming = s->returns = false;
	heap_cancel(&x->core->timers, &s->lasting->grace);
	(returns ? resume_send_rest : resume_answer)(x, s);
	session_answered(x->sessions, s, returns || s->lasting->resume_tag[0] != '\0');
}

bool resume_goes_on(struct request_context *x, struct session *s)
{
	if (s->open > 0 || session_count_open(s) > 0)
		return false;
	resume_finish(x, s);
	return true;
}

void resume_grace_over(struct request_context *x, struct session *s)
{
	if (s->detached)
		session_end(x, s, ENDING_UNSURE);
	else
		resume_finish(x, s);
}

/* Compares all bytes, so that the time does not reveal where the first difference is. */
static bool secret_matches(const struct session *s, struct span secret)
{
	unsigned char differ = secret.n != sizeof(s->lasting->secret) - 1;

	for (size_t i = 0; i < secret.n && i < sizeof(s->lasting->secret) - 1; i++)
		differ |= (unsigned char)(s->lasting->secret[i] ^ secret.p[i]);
	return differ == 0;
}

/* NULL: no session with grace has that number and secret. */
static struct session *session_of_request(struct request_context *x)
{
	struct span id = x->request.word[0];
	uint64_t serial = 0;
	struct session *s;

	if (id.n == 0 || id.n > 18)
		return NULL;
	for (size_t i = 0; i < id.n; i++) {
		if (id.p[i] < '0' || id.p[i] > '9')
			return NULL;
		serial = serial * 10 + (uint64_t)(id.p[i] - '0');
	}
	s = session_of_serial(x->sessions, serial);
	return s && s->grace_us > 0 && secret_matches(s, x->request.word[1]) ? s : NULL;
}

static void resume_all_of(struct request_context *x, struct session *s, struct session *from)
{
	bids_take_over(s, from);
	jobs_take_over(s, from);
	take_places_take_over(s, from);
	session_take_over(x->sessions, s, from);
}

static void resume_take_over(struct request_context *x, struct session *s, struct session *from)
{
	if (!from->detached) {
		session_ended(x->sessions, from, "resumed");
		session_hang_up(x->sessions, from, "resumed");
		leave_connection(x, from);
	}
	record_over(x, s);
	resume_all_of(x, s, from);
	record_session(x, s);
}

static void resume_wait(struct request_context *x, struct session *s)
{
	s->resuming = true;
	heap_set(&x->core->timers, &s->lasting->grace, instant_add(x->core->now, RESUME_WAIT_US));
}

void resume_return(struct request_context *x, struct session *s, struct session *from)
{
	int64_t grace_us = from->grace_us;

	resume_all_of(x, s, from);
	session_set_known(x->sessions, s, grace_us > 0);
	s->resuming = s->returns = true;
}

void resume_return_end(struct request_context *x, struct session *s)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session)
		c->here = c->state == CLAIM_HELD && !c->not_notified;
	(void)session_count_open(s);
	resume_wait(x, s);
	session_goes_on(x->sessions, s);
}

void serve_RESUME(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct session *from;

	if (!session_is_empty(s) || take_first(s) || !TAILQ_EMPTY(&s->pendings) || s->resuming) {
		send_invalid(x, s, ERROR_ARG,
			     "RESUME is for a session that holds nothing, waits for nothing and has lost nothing: send it over a new connection");
		return;
	}
	if (x->engine->stopping) {
		send_draining(x, s, q->tag);
		return;
	}
	from = session_of_request(x);
	if (!from) {
		send_error(x, s, q->tag, ERROR_NOTFOUND, "no session has this number and secret; it had no grace, or its grace is over");
		return;
	}
	if (from != s)
		resume_take_over(x, s, from);
	metric_add(&x->core->metrics, METRIC_RESUMES, 1);
	memcpy(s->lasting->resume_tag, q->tag.p ? q->tag.p : "", q->tag.n);
	s->lasting->resume_tag[q->tag.n] = '\0';
	if (session_count_open(s) == 0) {
		resume_answer(x, s);
		return;
	}
	s->busy |= q->tag.n == 0;
	resume_wait(x, s);
}

/* --- a LOCK repeated --- */

static struct claim *wait_not_notified(const struct session *s, const struct lock *l, struct span owner)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->lock == l && c->state == CLAIM_WAITING && c->not_notified && span_equal(claim_owner(c), owner))
			return c;
	}
	return NULL;
}

static struct claim *wait_in_other_mode(struct request_context *x, const struct session *s, struct span name, struct span owner, bool shared)
{
	struct lock *l = s->waits_not_notified > 0 ? lock_find(&x->engine->table, name) : NULL;
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (l && c->lock == l && c->state == CLAIM_WAITING && c->not_notified && c->shared != shared && span_equal(claim_owner(c), owner))
			return c;
	}
	return NULL;
}

static void wait_drop_not_notified(struct request_context *x, struct claim *c)
{
	struct session *s = c->session;

	TAILQ_REMOVE(&s->claims, c, in_session);
	s->waiting--;
	s->waits_not_notified--;
	hold_abandon(x->engine, c, INSTANT_PAST);
}

void resume_end_groups(struct request_context *x, struct session *s)
{
	/* First all leave their queues: what one gives back must not be granted to another one. */
	groups_end(x, s, true);
	groups_end(x, s, false);
}

static bool groups_make_way(struct session *s, struct span name, struct span owner, bool shared)
{
	struct group *g;
	bool ending = false;

	for (; (g = group_in_other_mode(s, name, owner, shared)) && g->bid.not_notified; ending = true)
		bid_is_ending(&g->bid);
	return ending;
}

/* The request is exclusive, and its owner has a shared grant of which nobody was told. That grant lapses. */
static void drop_shared_grant(struct request_context *x, const struct session *s, struct span name, struct span owner, bool shared)
{
	const struct lock *l = lock_find(&x->engine->table, name);
	struct claim *c = l ? lock_holder_of(l, s, owner) : NULL;

	if (c && c->not_notified && c->shared && !shared && l->lease.state == LEASE_HELD)
		hold_lapse(x->engine, c);
}

/* Works on all names at once: what is given back for one name must not be granted to a request that is to end for the next. */
void resume_make_way(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct span owner = request_owner(q);
	bool shared = request_is_shared(q), ending = false;
	struct claim *c;

	for (unsigned i = 0; i < q->words; i++)
		ending |= groups_make_way(s, q->word[i], owner, shared);
	for (unsigned i = 0; i < q->words; i++)
		while ((c = wait_in_other_mode(x, s, q->word[i], owner, shared)))
			wait_drop_not_notified(x, c);
	if (ending)
		resume_end_groups(x, s);
	for (unsigned i = 0; i < q->words; i++)
		drop_shared_grant(x, s, q->word[i], owner, shared);
}

void resume_give_up(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct span name = q->word[0], owner = request_owner(q);
	const struct lock *l = s->waits_not_notified > 0 ? lock_find(&x->engine->table, name) : NULL;
	struct claim *c;

	while (l && (c = wait_not_notified(s, l, owner)))
		wait_drop_not_notified(x, c);
	if (groups_give_up(s, name, owner))
		resume_end_groups(x, s);
	permits_give_up(x, s, name, owner);
}

enum place resume_old_place(struct request_context *x, struct session *s, struct span owner, bool shared, bool patient, struct claim **ret_claim)
{
	struct lock *l = s->resumed ? lock_find(&x->engine->table, x->request.word[0]) : NULL;
	struct claim *c = l ? lock_claim_of(l, s, owner) : NULL;

	*ret_claim = c;
	if (c && c->state == CLAIM_HELD && c->not_notified && l->lease.state == LEASE_HELD) {
		if (c->shared != shared)
			return PLACE_NONE; /* it is shared, and the answer reports it; if this request is refused, it lapses */
		claim_notified(x, c);
		return PLACE_TURN;
	}
	c = l && s->waits_not_notified > 0 ? wait_not_notified(s, l, owner) : NULL;
	if (!c)
		return PLACE_NONE;
	if (!patient || !c->patient || c->shared != shared) {
		wait_drop_not_notified(x, c);
		return PLACE_NONE;
	}
	c->not_notified = false;
	s->waits_not_notified--;
	*ret_claim = c;
	return PLACE_WAITS;
}
