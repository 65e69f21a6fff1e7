/* SPDX-License-Identifier: BSD-2-Clause */
/* See groups.h. */
#include "daemon/core/group/groups.h"

#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/job/job.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/show.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/reply/watch.h"

#define GAINERS_A_STEP 2048 /* the work: 1 for a name, 8 for a group that continues */
#define GAINER_GROUP   8

void groups_gain(struct request_context *x, struct session *s)
{
	session_set_gains(x->sessions, s, true);
	request_context_again(x);
}

/* Its client has got a name for which it asks. */
static bool group_gains(const struct request_context *x, const struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++) {
		const struct part *p = &g->part[i];
		const struct lock *l = p->claim ? p->claim->lock : p->seen;
		bool asked = p->claim ? p->claim->state != CLAIM_HELD : g->any;

		if (asked && l && lock_holder_of(l, g->bid.session, g->bid.owner) && part_is_had(x, g, p))
			return true;
	}
	return false;
}

/* False: the step has no time for all of its groups. Those that were made due are not found again. */
static bool session_gains(struct request_context *x, const struct session *s, int64_t *left)
{
	struct group *g;

	GROUPS_FOREACH(g, s) {
		if (g->bid.due || !group_gains(x, g))
			continue;
		bid_set_due(x, &g->bid, DUE_NOW);
		*left -= GAINER_GROUP;
		if (*left <= 0)
			return false;
	}
	*left -= 1 + s->waiting;
	return true;
}

void groups_again(struct request_context *x)
{
	int64_t left = core_portion(x->core, GAINERS_A_STEP);
	struct session *s;

	while (left > 0 && (s = TAILQ_FIRST(&x->sessions->gainers)))
		if (session_gains(x, s, &left))
			session_set_gains(x->sessions, s, false);
	if (!TAILQ_EMPTY(&x->sessions->gainers))
		request_context_again(x);
}

static bool group_has_name(const struct group *g, struct span name)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (span_equal(g->part[i].name, name))
			return true;
	return false;
}

struct group *group_in_other_mode(const struct session *s, struct span name, struct span owner, bool shared)
{
	struct group *g;

	GROUPS_FOREACH(g, s)
		if (!g->bid.ending && g->shared != shared && span_equal(g->bid.owner, owner) && group_has_name(g, name))
			return g;
	return NULL;
}

bool groups_give_up(struct session *s, struct span name, struct span owner)
{
	struct group *g;
	bool ending = false;

	GROUPS_FOREACH(g, s)
		if (g->bid.not_notified && !g->bid.ending && span_equal(g->bid.owner, owner) && group_has_name(g, name)) {
			bid_is_ending(&g->bid);
			ending = true;
		}
	return ending;
}

/* --- the connection --- */

void groups_detach(struct request_context *x, struct session *s)
{
	struct group *g;

	GROUPS_FOREACH(g, s) {
		bid_detach(&g->bid);
		heap_cancel(&x->core->timers, &g->bid.timer);
	}
}

void groups_bound(struct request_context *x, struct session *s, struct instant until)
{
	struct group *g;

	GROUPS_FOREACH(g, s)
		if (g->bid.not_notified)
			heap_set(&x->core->timers, &g->bid.timer, until);
}

/* --- the end --- */

void groups_end(struct request_context *x, struct session *s, bool waiting)
{
	struct group *g, *next;

	for (g = group_of_bid(TAILQ_FIRST(&s->bids[BID_GROUP])); g; g = next) {
		next = group_of_bid(TAILQ_NEXT(&g->bid, in_session));
		if (!g->bid.ending)
			continue;
		if (waiting)
			group_leave_queues(x, g);
		else
			group_free(x, g);
	}
}

static void groups_release(struct request_context *x, struct session *s)
{
	while (s && !TAILQ_EMPTY(&s->bids[BID_GROUP]))
		group_release(x, group_of_bid(TAILQ_FIRST(&s->bids[BID_GROUP])));
}

void groups_free_all(struct request_context *x)
{
	struct session *s;

	for (uint32_t i = 0; i < x->sessions->slots; i++)
		groups_release(x, x->sessions->slot[i]);
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached)
		groups_release(x, s);
}

static bool group_needs_answer(const struct group *g)
{
	return !g->bid.reason_sent && !g->bid.not_notified;
}

void group_answered(struct request_context *x, struct group *g)
{
	struct session *s = g->bid.session;
	bool tagged = bid_is_tagged(&g->bid);

	group_free(x, g);
	session_answered(x->sessions, s, tagged);
}

static void group_send_refused(struct request_context *x, const struct group *g, const struct part *p, enum refusal why)
{
	struct session *s = g->bid.session;
	int64_t waited = instant_diff(x->core->now, g->bid.asked_at);

	core_answers(x->core, group_verb(g));
	if (why == REFUSED_BUSY)
		busy_send(x, s, span_of(g->bid.tag), p->seen, g->bid.owner);
	else if (why == REFUSED_TIMEOUT)
		busy_send_timeout(x, s, span_of(g->bid.tag), p->seen, g->bid.owner, kept_remark(&g->bid.remark).trace, g->bid.asked_at);
	else
		deliver_refusal(x, s, span_of(g->bid.tag), why);
	metric_waited(&x->core->metrics, refusal_result(why), waited);
	core_name_waited(x->core, (p ? p : &g->part[0])->name, refusal_result(why), waited);
}

void group_refuse(struct request_context *x, struct group *g, const struct part *p, enum refusal why)
{
	if (g->take) {
		take_refused(x, g->take, why);
		group_free(x, g);
		return;
	}
	if (why == REFUSED_BUSY && g->bid.patient)
		why = g->bid.leaving ? REFUSED_CANCELLED : REFUSED_TIMEOUT;
	if (group_needs_answer(g))
		group_send_refused(x, g, p, why);
	metric_add(&x->core->metrics, METRIC_FAILURES, why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED);
	group_answered(x, g);
}

static void group_send(struct request_context *x, const struct group *g, struct claim *c, const char *word, unsigned count)
{
	struct reply r;

	core_answers(x->core, group_verb(g));
	reply_begin(&r, session_line(x->sessions), span_of(g->bid.tag), word);
	reply_grant(x, &r, c);
	reply_ms(&r, "ttl_ms", c->lock->lease.ttl_us);
	reply_int(&r, "count", count);
	reply_mode(&r, c);
	send_line(x, g->bid.session, &r);
}

/* The client holds it already: counts its hold up. If the client was not told of that hold before, the count stays. */
static void part_count_up(struct request_context *x, struct group *g, struct claim *own)
{
	if (g->bid.not_notified)
		return;
	if (own->not_notified) {
		claim_notified(x, own);
		return;
	}
	if (own->count >= (g->bid.count > 0 ? g->bid.count : HOLDS_MOST))
		return;
	own->count++;
	record_held(x, own);
}

/* The claim belongs to the client from now on. */
static void part_give(struct request_context *x, struct group *g, struct part *p)
{
	struct session *s = g->bid.session;
	struct claim *c = p->claim;

	TAILQ_REMOVE(&g->agent.claims, c, in_session);
	TAILQ_INSERT_TAIL(&s->claims, c, in_session);
	lock_pass_claim(c, s);
	c->not_notified = g->bid.not_notified;
	s->held++;
	if (!c->not_notified)
		claim_forget_loss(x, c);
	else if (!s->detached && !s->resuming)
		claim_bound(x, c, s->lasting->repeat_until);
	record_held(x, c);
	name_history_add(x, s, lock_name(c->lock));
	if (c->lock->lease.at_risk)
		notices_add(&x->engine->notices, NOTICE_RISK, c, NULL, NOT_REFUSED); /* nobody was told that its renewal failed */
}

/* Call after the answer: the session that asked is told of its grant before any watcher. */
static void part_watch(struct request_context *x, struct part *p)
{
	if (p->claim)
		watch(x, p->claim, WATCH_GRANTED);
	p->claim = NULL;
}

/* Returns the client's hold of the name. */
static struct claim *part_claim(const struct request_context *x, const struct group *g, const struct part *p)
{
	return p->claim ? p->claim : group_own(x, g, p);
}

/* A new hold also grants what its owner has asked for besides. For an earlier hold that was done before. */
static void group_fold(struct request_context *x, struct claim *c, bool given)
{
	if (given && !TAILQ_EMPTY(&c->lock->contender->waiters))
		holders_fold(x->engine, c);
}

/* Drops the parts for names that the client holds already. Returns how many parts still hold a name. */
static unsigned group_drop_owned(struct request_context *x, struct group *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->parts; i++) {
		if (group_own(x, g, &g->part[i]))
			inner_session_drop(x->engine, &g->part[i].claim);
		n += g->part[i].claim != NULL;
	}
	return n;
}

/* The records of new holds come together, before those of holds that are counted up. */
static void group_give(struct request_context *x, struct group *g)
{
	unsigned left = group_drop_owned(x, g);

	for (unsigned i = 0; i < g->parts; i++) {
		if (!g->part[i].claim)
			continue;
		x->more = --left > 0;
		part_give(x, g, &g->part[i]);
	}
	for (unsigned i = 0; i < g->parts; i++)
		if (!g->part[i].claim)
			part_count_up(x, g, group_own(x, g, &g->part[i]));
}

/* Other requests of the session may wait for what it has got, or it may close a deadlock. */
static void session_has_won(struct request_context *x, struct session *s)
{
	if (!TAILQ_EMPTY(&s->bids[BID_GROUP]))
		groups_gain(x, s);
	deadlock_note(x, s);
}

static void group_won(struct request_context *x, struct group *g)
{
	struct session *s = g->bid.session;

	group_answered(x, g);
	session_has_won(x, s);
}

/* The lock of a job that a TAKE was given: the session gets both, or neither. */
static void group_win_take(struct request_context *x, struct group *g)
{
	struct session *s = g->bid.session;
	struct take *take = g->take;
	struct claim *c;
	bool given;

	if (!take_may_win(x, take)) {
		take_refused(x, take, REFUSED_BUSY);
		group_free(x, g);
		return;
	}
	group_give(x, g);
	c = part_claim(x, g, &g->part[0]);
	given = g->part[0].claim == c;
	g->part[0].claim = NULL;
	group_free(x, g);
	take_won(x, take, c);
	if (given)
		watch(x, c, WATCH_GRANTED);
	group_fold(x, c, given);
	watch_who_waits(x, c);
	session_has_won(x, s);
}

void group_win_all(struct request_context *x, struct group *g)
{
	struct reply r;

	if (g->take) {
		group_win_take(x, g);
		return;
	}
	group_give(x, g);
	for (unsigned i = 0; i < g->parts; i++) {
		struct claim *c = part_claim(x, g, &g->part[i]);

		if (!g->bid.not_notified)
			group_send(x, g, c, "*", c->count);
		group_fold(x, c, g->part[i].claim != NULL);
	}
	if (!g->bid.not_notified) {
		core_answers(x->core, group_verb(g));
		reply_begin(&r, session_line(x->sessions), span_of(g->bid.tag), "OK");
		reply_int(&r, "n", g->parts);
		send_line(x, g->bid.session, &r);
	}
	for (unsigned i = 0; i < g->parts; i++) {
		part_watch(x, &g->part[i]);
		watch_who_waits(x, group_own(x, g, &g->part[i]));
	}
	if (x->attends)
		slow_wait_of_group(x, g->bid.session, g->part[g->next < g->parts ? g->next : 0].name, g->parts, kept_remark(&g->bid.remark).trace,
		                   g->bid.asked_at);
	group_won(x, g);
}

void group_win_one(struct request_context *x, struct group *g, struct part *p)
{
	struct claim *own = group_own(x, g, p), *c = own ? own : p->claim;

	group_drop_parts(x, g, own ? NULL : p);
	if (own)
		part_count_up(x, g, own);
	else
		part_give(x, g, p);
	if (!g->bid.not_notified)
		group_send(x, g, c, "OK", c->count);
	part_watch(x, p);
	group_fold(x, c, !own);
	watch_who_waits(x, c);
	if (x->attends)
		slow_wait_of_group(x, g->bid.session, lock_name(c->lock), g->parts, kept_remark(&g->bid.remark).trace, g->bid.asked_at);
	group_won(x, g);
}

/* --- the next step --- */

static struct lock *part_lock(const struct request_context *x, const struct part *p)
{
	return lock_find(&x->engine->table, p->name);
}

static bool part_is_asked(const struct part *p)
{
	return p->claim && p->claim->state != CLAIM_HELD;
}

/* Somebody holds it, or waits in its queue. */
static bool part_is_taken(struct request_context *x, struct group *g, const struct part *p)
{
	const struct lock *l = part_lock(x, p);

	if (!l || part_is_had(x, g, p) || (g->shared && holders_are_open(x->engine, l, g->bid.priority)))
		return false;
	return lock_is_taken(l) || l->contender->patient > 0;
}

static void part_see(struct request_context *x, struct part *p, enum refusal why)
{
	if (!p->seen) {
		p->seen = lock_find_or_add(&x->engine->table, p->name);
		p->seen->name.refs++;
	}
	p->why = why;
}

/* Returns the first refused name that somebody holds; if there is none, the first refused one. */
static struct part *group_refused(struct request_context *x, struct group *g)
{
	struct part *first = NULL;

	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (part_is_had(x, g, p) || p->claim || p->why == NOT_REFUSED)
			continue;
		if (p->why == REFUSED_BUSY)
			return p;
		if (!first)
			first = p;
	}
	return first;
}

static bool group_asks(const struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (part_is_asked(&g->part[i]))
			return true;
	return false;
}

/* If a hold was lost before the client was told of it, nobody needs to know. */
static void group_drop_lost(struct request_context *x, struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (!p->claim || p->claim->state != CLAIM_LOST)
			continue;
		inner_session_drop(x->engine, &p->claim);
		part_see(x, p, REFUSED_BUSY);
	}
}

static bool group_may_wait(const struct request_context *x, const struct group *g)
{
	return g->bid.patient && !g->bid.leaving && !x->engine->draining && instant_before(x->core->now, g->bid.wait_until);
}

/* --- LOCKALL: the next step --- */

/* All requests ask for names in the same order, so no two of them wait for each other. */
static bool part_comes_before(const struct part *p, const struct part *q)
{
	return span_compare(p->name, q->name) < 0;
}

/* Returns the first name that it does not have; NULL: it has all. */
static struct part *all_next(struct request_context *x, struct group *g)
{
	struct part *next = NULL;

	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (!part_is_had(x, g, p))
			next = next && part_comes_before(next, p) ? next : p;
		else if (part_is_asked(p))
			inner_session_drop(x->engine, &p->claim); /* the client got it by another request */
	}
	return next;
}

/* While it waits for a name, it holds none that comes after it. */
static void all_give_back_after(struct request_context *x, struct group *g, const struct part *next)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (part_comes_before(next, &g->part[i]))
			inner_session_drop(x->engine, &g->part[i].claim);
}

static void all_go_on(struct request_context *x, struct group *g)
{
	struct part *p = all_next(x, g);

	if (!p) {
		group_win_all(x, g);
		return;
	}
	all_give_back_after(x, g, p);
	if (p->claim)
		return;
	if (p->why != NOT_REFUSED && (p->why != REFUSED_BUSY || !group_may_wait(x, g))) {
		group_drop_parts(x, g, NULL);
		group_refuse(x, g, p, x->engine->draining ? REFUSED_DRAINING : p->why);
		return;
	}
	g->state = g->bid.patient && !g->bid.leaving ? GROUP_WAITING : GROUP_TRYING;
	g->next = (unsigned)(p - g->part);
	part_ask(x, g, p, g->state == GROUP_WAITING);
	if (g->state == GROUP_WAITING)
		deadlock_note(x, g->bid.session);
}

/* --- LOCKANY: the next step --- */

/* The stores have a problem, or are slow. Each further name would take as long again. */
static bool any_has_tried_enough(const struct request_context *x, const struct group *g)
{
	return g->next > 0 && (refusal_is_trouble(g->part[g->next - 1].why) || instant_diff(x->core->now, g->bid.asked_at) >= WAITERS_HURRY_US);
}

/* Asks for one name after the other, until one is granted. */
static bool any_try(struct request_context *x, struct group *g)
{
	for (; g->next < g->parts && !any_has_tried_enough(x, g); g->next++) {
		struct part *p = &g->part[g->next];

		if (part_is_taken(x, g, p)) {
			part_see(x, p, REFUSED_BUSY);
			continue;
		}
		g->state = GROUP_TRYING;
		part_ask(x, g, p, false);
		return true;
	}
	return false;
}

static bool any_may_wait_for(const struct part *p)
{
	return p->why == NOT_REFUSED || p->why == REFUSED_BUSY || refusal_is_trouble(p->why);
}

/* No name is free now: it waits for all of them, if it may. */
static void any_wait(struct request_context *x, struct group *g)
{
	bool may_wait = group_may_wait(x, g), waits = false;

	for (unsigned i = 0; i < g->parts && may_wait; i++) {
		if (!any_may_wait_for(&g->part[i]))
			continue;
		part_ask(x, g, &g->part[i], true);
		waits = true;
	}
	if (waits)
		g->state = GROUP_WAITING;
	else
		group_refuse(x, g, group_refused(x, g), x->engine->draining ? REFUSED_DRAINING : group_refused(x, g)->why);
}

static struct part *any_had(struct request_context *x, struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (part_is_had(x, g, &g->part[i]))
			return &g->part[i];
	return NULL;
}

/*
 * The name of a semaphore, which the client has mistaken for a lock. It is refused as in names_are_of_locks(), which knows only the semaphores of this daemon.
 * NULL: none.
 */
static const struct part *any_semaphore_part(const struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (!g->part[i].claim && g->part[i].why == REFUSED_IN_USE)
			return &g->part[i];
	return NULL;
}

/* The first name that it gets is enough. In the same step it gives back all others, and leaves their queues. */
static void any_go_on(struct request_context *x, struct group *g)
{
	const struct part *of_semaphore = any_semaphore_part(g);
	struct part *had = any_had(x, g);

	if (had) {
		group_win_one(x, g, had);
		return;
	}
	if (of_semaphore) {
		group_drop_parts(x, g, NULL);
		group_refuse(x, g, of_semaphore, REFUSED_IN_USE);
		return;
	}
	for (unsigned i = 0; i < g->parts && g->state == GROUP_WAITING; i++)
		if (!g->part[i].claim && g->part[i].why == REFUSED_BUSY)
			part_ask(x, g, &g->part[i], true); /* it was granted, and lost at once */
	if (group_asks(g))
		return;
	if (g->state == GROUP_WAITING) {
		group_refuse(x, g, group_refused(x, g), group_refused(x, g)->why);
		return;
	}
	g->next += g->state == GROUP_TRYING;
	if (!any_try(x, g))
		any_wait(x, g);
}

void group_step_next(struct request_context *x)
{
	struct group *g = group_of_bid(TAILQ_FIRST(&x->bids_due[BID_GROUP]));

	bid_set_due(x, &g->bid, DUE_NOT);
	x->step_again = true;
	group_drop_lost(x, g);
	if (g->bid.withdrawn) {
		group_drop_parts(x, g, NULL);
		group_refuse(x, g, NULL, withdrawn_why(x, g->bid.denied));
	} else if (g->any) {
		any_go_on(x, g);
	} else {
		all_go_on(x, g);
	}
}

void group_step_fired(struct request_context *x, struct timer *t)
{
	group_answered(x, container_of(t, struct group, bid.timer));
	x->step_again = true;
}

void group_step_finish_up(struct request_context *x, struct session *s)
{
	struct group *g;

	GROUPS_FOREACH(g, s) {
		if (g->state == GROUP_WAITING && g->any)
			bid_withdraw(x, &g->bid);
		else if (g->state == GROUP_WAITING && !g->bid.leaving && !g->bid.withdrawn && part_is_asked(&g->part[g->next]))
			wait_finish_up(x->engine, g->part[g->next].claim);
		g->bid.leaving = true;
	}
}
