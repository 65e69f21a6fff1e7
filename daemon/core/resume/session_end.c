/* SPDX-License-Identifier: BSD-2-Clause */
/* See session_end.h. */
#include "daemon/core/resume/session_end.h"

#include "daemon/core/engine/validity.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/engine/wait.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/job.h"
#include "daemon/core/job/session_jobs.h"
#include "daemon/core/job/job_list.h"
#include "daemon/core/job/take.h"
#include "daemon/core/rate/rate_turns.h"
#include "daemon/core/reply/former_holders.h"
#include "daemon/core/reply/lists.h"
#include "daemon/core/reply/watch_news.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/rights/auth.h"
#include "daemon/core/semaphore/permits.h"

void session_end_all(struct request_context *x)
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

	while ((p = TAILQ_LAST(&s->pendings, pendings))) { /* the last first: no RATE of this session is the next whose turn it is */
		TAILQ_REMOVE(&s->pendings, p, in_session);
		p->session = NULL;
		if (p->turn)
			rate_turn_drop(x, p->turn);
		else if (p->auth)
			auth_drop(x, p->auth);
	}
}

/* Until when the client may rely on what it held, or has lost: one that is certainly gone, or said so, believes nothing. */
static struct instant session_believes_until(const struct session *s, const struct claim *c, enum ending how)
{
	if (how != ENDING_UNSURE)
		return INSTANT_PAST;
	return s->detached && c->state == CLAIM_HELD ? c->believed : INSTANT_NEVER;
}

/* A claim that leaves a line may let in others, and when a reader goes the others are told: none of this session. */
static void session_claims_are_ending(struct session *s)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session)
		c->ending = true;
	groups_are_ending(s);
	permits_are_ending(s);
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
			hold_abandon(x->engine, c, session_believes_until(s, c, how));
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
	/* What waits to hold a lock once more, by count=, is not to get it anew as something else. */
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

/* Where too many sessions are detached, of all or of one peer, one that has a claim takes the place of one that has none. */
static bool session_may_stay(struct request_context *x, const struct session *s)
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
			heap_set(&x->core->timers, &c->timer, c->asking->wait_until); /* claim_bound() may have set it to a sooner moment */
	} else if (c->state == CLAIM_HELD) {
		heap_cancel(&x->core->timers, &c->timer);
		c->contended_at = (struct instant){0};
		if (c->lock->lease.state == LEASE_HELD)
			c->believed = c->not_notified ? INSTANT_PAST : validity_of(x->engine, c);
	} else if (c->acknowledged) {
		heap_cancel(&x->core->timers, &c->timer); /* the UNLOCK may be repeated after RESUME */
	}
}

void leave_connection(struct request_context *x, struct session *s)
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
	if (session_may_stay(x, s))
		leave_connection(x, s);
	else
		session_end(x, s, s->grace_us > 0 ? ENDING_UNSURE : how); /* with grace its client may go on without a connection */
}
