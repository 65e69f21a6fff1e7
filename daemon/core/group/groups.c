/* SPDX-License-Identifier: BSD-2-Clause */
/* See groups.h. */
#include "daemon/core/group/groups.h"

#include "daemon/core/deadlock/deadlock.h"
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

		if (asked && l && lock_holder_of(l, g->bid.session, bid_owner(&g->bid)) && part_is_had(x, g, p))
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
		if (span_equal(part_name(&g->part[i]), name))
			return true;
	return false;
}

struct group *group_in_other_mode(const struct session *s, struct span name, struct span owner, bool shared)
{
	struct group *g;

	GROUPS_FOREACH(g, s)
		if (!g->bid.ending && g->shared != shared && span_equal(bid_owner(&g->bid), owner) && group_has_name(g, name))
			return g;
	return NULL;
}

bool groups_give_up(struct session *s, struct span name, struct span owner)
{
	struct group *g;
	bool ending = false;

	GROUPS_FOREACH(g, s)
		if (g->bid.not_notified && !g->bid.ending && span_equal(bid_owner(&g->bid), owner) && group_has_name(g, name)) {
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
		busy_send(x, s, span_of(g->bid.tag), p->seen, bid_owner(&g->bid));
	else if (why == REFUSED_TIMEOUT)
		busy_send_timeout(x, s, span_of(g->bid.tag), p->seen, bid_owner(&g->bid), kept_remark(&g->bid.remark).trace, g->bid.asked_at);
	else
		deliver_refusal(x, s, span_of(g->bid.tag), why);
	metric_waited(&x->core->metrics, refusal_result(why), waited);
	core_name_waited(x->core, part_name(p ? p : &g->part[0]), refusal_result(why), waited);
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
		slow_wait_of_group(x, g->bid.session, part_name(&g->part[g->next < g->parts ? g->next : 0]), g->parts, kept_remark(&g->bid.remark).trace,
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
