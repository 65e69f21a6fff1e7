/* SPDX-License-Identifier: BSD-2-Clause */
/* The watchdog; stores that may have been without the key for a while although their votes stand. */
#include "daemon/core/engine/holding.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/round/engine_data.h"
#include "daemon/core/round/round.h"

#include <string.h>

/* Notes from an executed renewal whether a key of this daemon excludes others at that store, apart from the vote. */
static void vote_gaps_note_key(struct lease *x, const struct answer *a)
{
	if (renewal_is_none(x->renewal))
		return;
	if (a->code == 'M' || a->code == 'B')
		nodeset_add(&x->renewal->gone, a->node);
	else if (a->code != 'Q' && a->code != 'F')
		nodeset_remove(&x->renewal->gone, a->node);
}

static bool vote_is_valid(const struct engine *e, const struct lease *x, unsigned node)
{
	return instant_before(e->core->now, x->votes[node]);
}

static struct renewal *vote_gaps_add(struct engine *e, struct lease *x, unsigned node)
{
	struct renewal *b = lease_renewal(&e->table, x);

	nodeset_add(&b->gaps, node);
	b->gaps_until = e->core->now;
	b->confirmed = NODESET_NONE;
	return b;
}

/*
 * The answer reports that the key was put back, is missing, or is another's. Returns whether the store thereby denies a present vote. To be called before the
 * vote changes. If the vote is over by now, the key may just have expired. If the vote is not over even now, somebody deleted the key.
 */
static bool vote_gaps_denied(struct engine *e, struct lease *x, const struct answer *a)
{
	bool denied = vote_is_valid(e, x, a->node);
	struct renewal *b;

	if (!denied && a->code != 'A')
		return false;
	b = vote_gaps_add(e, x, a->node);
	if (!denied)
		return false;
	b->denied_deadline = instant_max(b->denied_deadline, lease_deadline(x, e->core->conf.nodes));
	if (a->code != 'A')
		return true;
	metric_add(&e->core->metrics, METRIC_REASSERTIONS, 1);
	if (core_may_log(e->core, BURST_REASSERTED))
		core_log(e->core, LOG_NOTICE, "reasserted", "name=%s node=%s", core_quoted(e->core, name_unescaped(name_text(x->name))),
		         e->core->conf.label[a->node]);
	return true;
}

/* This store was asked after the last gap was over, and had the key: so it has no gap that overlaps with those. */
static void vote_gaps_confirm(const struct engine *e, struct lease *x, const struct round *r, unsigned node)
{
	struct nodeset valid = NODESET_NONE;

	if (!nodeset_any(x->renewal->gaps) || instant_before(r->calls.sent[node], x->renewal->gaps_until))
		return;
	nodeset_add(&x->renewal->confirmed, node);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (vote_is_valid(e, x, i))
			nodeset_add(&valid, i);
	if (!nodeset_any(nodeset_without(valid, x->renewal->confirmed)))
		x->renewal->gaps = NODESET_NONE;
}

/* A renewal whose answer was lost may have put the key back. */
static bool vote_may_have_gap(const struct engine *e, const struct lease *x, unsigned node)
{
	bool answer_lost = nodeset_has(x->placed.unknown, node) && !nodeset_has(x->placed.sure, node);

	return answer_lost || !vote_is_valid(e, x, node);
}

/* The answer to this round reports that the key was there. To be called before the vote is raised, and before the store is `sure`. */
static void vote_gaps_extended(struct engine *e, struct lease *x, const struct round *r, unsigned node)
{
	if (x->state == LEASE_HELD && vote_may_have_gap(e, x, node))
		vote_gaps_add(e, x, node);
	else
		vote_gaps_confirm(e, x, r, node);
}

void vote_gaps_handed_over(struct engine *e, struct lease *x, struct nodeset nodes)
{
	x->placed.unknown = nodes;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			vote_gaps_add(e, x, i);
}

/* A quorum has renewed the lease. */
static void vote_gaps_renewed(struct lease *x)
{
	if (x->renewal->denied_deadline.us && !instant_before(x->promised.until, x->renewal->denied_deadline))
		x->renewal->denied_deadline.us = 0;
}

/* The votes without a gap are no quorum. This is true even if the stores have put the key back since then. To be asked when a store has denied its vote. */
static bool vote_gaps_are_too_many(const struct engine *e, const struct lease *x)
{
	struct votes whole;

	memcpy(whole.until, x->votes, e->core->conf.nodes * sizeof(x->votes[0]));
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(x->renewal->gaps, i))
			whole.until[i] = INSTANT_PAST;
	return !instant_before(e->core->now, votes_deadline(whole.until, e->core->conf.nodes));
}

/*
 * The watchdog's round: it asks every usable store to renew the key, with the end of the lease's range of tokens as the floor of the fence. A store without
 * the key puts it back, but only while the votes of the others are a quorum: otherwise the next run of the daemon would take the key as proof that the lock
 * was held all the time. If so many stores have lost the key that somebody else may have held the lock, the lock is lost. At most one EXTEND of a value is in
 * flight to a store, so answers come in order. See ALGORITHMS.md, Renewal.
 */

#define RETRY_LEAST_US (20 * MSEC)
#define PAUSE_MOST_US  SEC

static void renew_ask(struct engine *e, struct round *r, unsigned node, struct span value, struct span ticket)
{
	struct lease *x = r->lease;
	struct instant vote = vote_until(e->core->now, r->ttl_us);
	bool alive = instant_before(e->core->now, x->votes[node]);
	struct instant put_back = lease_others_until(x, e->core->conf.nodes, node);
	struct call *call;

	if (!alive && !instant_before(e->core->now, put_back))
		return;
	/* A store never shortens the key. But a renewal for a shorter lease lowers the vote as soon as it is sent. */
	x->votes[node] = instant_min(x->votes[node], vote);
	call = ask_extend(&e->calls, r, node, value, round_floor(r), put_back);
	if (ticket.n > 0)
		shared_lease_show(e, x, call, ticket);
	nodeset_add(&x->placed.unanswered, node);
	nodeset_add(&x->placed.renewal_sent, node);
}

static void renew_close(struct engine *e, struct round *r, enum refusal why)
{
	struct lease *x = r->lease;

	lease_end_round(x);
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
	notices_extended(&e->notices, x, r->extends, why);
	lease_schedule(e, x);
	if (TAILQ_EMPTY(&x->renewal->extends) && !x->renewal->wants_token && !x->renewal->doubted)
		return;
	x->renewal->doubted = false;
	x->renew_at = e->core->now; /* it was requested while the round was under way */
	lease_schedule(e, x);
}

/* The lease for which the votes of this renewal count: at most the present terms, although a late renewal may have asked for longer ones. */
static int64_t renew_worth_us(const struct lease *x, const struct round *r)
{
	int64_t most_us = x->ttl_us > x->renew_ttl_us ? x->ttl_us : x->renew_ttl_us;

	return r->ttl_us < most_us ? r->ttl_us : most_us;
}

/* A longer lease has a longer margin before D. If its votes end within that margin, it is over although the renewal has its quorum. */
static enum renew_outcome renew_succeeded(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	int64_t worth_us = renew_worth_us(x, r), left_us = instant_diff(lease_deadline(x, e->core->conf.nodes), r->calls.begun);

	/* While answers came, EXTENDs may have asked for a shorter lease and then for a longer one. Votes from in between are worth less. */
	if (2 * left_us < worth_us)
		worth_us = left_us;
	x->ttl_us = worth_us;
	if (lease_loss_is_due(x, e->core->conf.nodes, e->core->now))
		return RENEW_LEASE_OVER;
	metric_add(&e->core->metrics, METRIC_RENEWALS, 1);
	x->broken = false; /* if somebody broke it, then at a minority */
	x->promised.ttl_us = r->ttl_us; /* no vote is worth more from now on: see renew_ask() and renew_worth_us() */
	x->promised.until = lease_deadline(x, e->core->conf.nodes);
	vote_gaps_renewed(x);
	x->renew_at = x->auto_renew ? instant_add(r->calls.begun, worth_us / 3) : INSTANT_NEVER;
	if (x->at_risk)
		lease_owner_notify(e, x, NOTICE_SAFE);
	lease_safe(e, x);
	renew_close(e, r, NOT_REFUSED);
	return RENEW_GOES_ON;
}

static void renew_risk(struct engine *e, struct lease *x)
{
	if (x->at_risk)
		return;
	metric_add(&e->core->metrics, METRIC_RISKS, 1);
	lease_owner_notify(e, x, NOTICE_RISK);
	lease_at_risk(e, x);
}

/* The pause after a renewal that was missed. */
static int64_t renew_pause_us(const struct lease *x)
{
	return x->ttl_us / 20 > RETRY_LEAST_US ? x->ttl_us / 20 : RETRY_LEAST_US;
}

/* RISK is sent to its holder at the first one, and nothing at the next ones: SAFE or LOST follows. */
static void renew_missed(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	/* Without a quorum renew_make_due() asks again, when there is one. */
	bool again = x->auto_renew && members_usable(&e->members) >= engine_quorum(e);

	metric_add(&e->core->metrics, METRIC_RENEWALS_MISSED, 1);
	x->renew_at = again ? instant_add(e->core->now, renew_pause_us(x)) : INSTANT_NEVER;
	if (x->auto_renew)
		renew_risk(e, x);
	renew_close(e, r, REFUSED_QUORUM);
}

static enum renew_outcome renew_decide(struct engine *e, struct round *r)
{
	struct nodeset open = r->expired ? NODESET_NONE : r->calls.open;

	if (nodeset_count(r->granted) >= engine_quorum(e))
		return renew_succeeded(e, r);
	if (nodeset_count(nodeset_or(r->granted, open)) < engine_quorum(e))
		renew_missed(e, r);
	else
		lease_schedule(e, r->lease); /* a store that denies the key has made the deadline earlier */
	return RENEW_GOES_ON;
}

static bool renew_may_ask(const struct member *m)
{
	return member_usable(m) && !flow_is_overdrawn(&m->flow);
}

/* A renewal that waits may be admitted too late. When a third of the lease is left, sends RISK to the holder; before that, returns when that will be. */
static struct instant renew_warn(struct engine *e, struct lease *x)
{
	struct instant low = instant_add(lease_deadline(x, e->core->conf.nodes), -x->ttl_us / 3);

	if (!x->auto_renew || x->at_risk)
		return INSTANT_NEVER;
	if (instant_before(e->core->now, low))
		return low;
	renew_risk(e, x);
	return INSTANT_NEVER;
}

/* Refuses EXTENDs that were not admitted within a second; returns when the next one will be refused. A renewal of the watchdog keeps waiting. */
static struct instant renew_refuse_overdue(struct engine *e, struct lease *x)
{
	const struct pending *p;

	while ((p = TAILQ_FIRST(&x->renewal->extends))) {
		struct instant due = instant_add(p->asked_at, WAITERS_HURRY_US);

		if (instant_before(e->core->now, due))
			return due;
		notices_extended(&e->notices, x, 1, REFUSED_NOT_EXTENDED);
	}
	if (!x->auto_renew)
		admission_leave(&e->admission, &x->renewal->entry); /* nobody needs the renewal any more */
	return INSTANT_NEVER;
}

void renew_due(struct engine *e, struct lease *x)
{
	struct instant half = instant_add(lease_deadline(x, e->core->conf.nodes), -x->ttl_us / 2), next;

	if (admit(e, &lease_renewal(&e->table, x)->entry, half, NULL)) {
		renew_begin(e, x);
		return;
	}
	next = renew_refuse_overdue(e, x);
	x->renew_at = instant_min(next, renew_warn(e, x));
	lease_schedule(e, x);
}

/*
 * A longer lease is in the journal before the stores are asked for it: they may grant it, and then CHECK, SAFE or RESUME report it, whatever EXTEND was
 * answered.
 */
static void renew_promise(struct engine *e, const struct round *r)
{
	struct lease *x = r->lease;
	struct instant until = vote_until(e->core->now, r->ttl_us);
	bool later = !x->auto_renew && instant_before(x->promised.until, until);

	if (r->ttl_us <= x->promised.ttl_us && !later)
		return;
	lease_promise(x, r->ttl_us, until);
	lease_owner_notify(e, x, NOTICE_LENGTHENS);
}

/*
 * Not enough stores can be asked: the renewal is missed before it began. Those that were asked may still answer. A client may ask for another renewal at
 * once, again and again, while no time passes: so there is a pause.
 */
static void renew_missed_at_once(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	int64_t pause_us = renew_pause_us(x);

	x->renewal->paused_until = instant_add(e->core->now, pause_us < PAUSE_MOST_US ? pause_us : PAUSE_MOST_US);
	renew_missed(e, r);
	retire_round(e, r);
}

void renew_begin(struct engine *e, struct lease *x)
{
	struct round *r = round_new(&e->rounds, QUESTION_RENEW, x->name, x);
	struct span value = value_in_text(e->core, &x->value), ticket;
	struct pending *p;

	admission_leave(&e->admission, &lease_renewal(&e->table, x)->entry);
	x->renewal->round = r;
	shared_lease_begin(r);
	rebase_begin(e, r);
	ticket = shared_lease_ticket(e, r);
	r->ttl_us = x->renew_ttl_us;
	x->ttl_us = r->ttl_us < x->ttl_us ? r->ttl_us : x->ttl_us;
	TAILQ_FOREACH(p, &x->renewal->extends, in_lease)
		r->extends++;
	renew_promise(e, r);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (renew_may_ask(&e->members.node[i]) && !nodeset_has(x->placed.unanswered, i))
			renew_ask(e, r, i, value, ticket);
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, e->core->conf.timeout_us));
	x->renew_at = INSTANT_NEVER;
	lease_schedule(e, x);
	if (nodeset_count(r->calls.asked) < engine_quorum(e))
		renew_missed_at_once(e, r);
}

/* No vote gets lower: the key is there, and a renewal never shortens it. */
static struct instant renew_vote(const struct lease *x, const struct round *r, unsigned node)
{
	return instant_max(x->votes[node], vote_until(r->calls.sent[node], renew_worth_us(x, r)));
}

/* A store never shortens the key, so the key may last longer than this run has asked for. */
static void renew_note_end(const struct engine *e, struct lease *x, const struct answer *a)
{
	int64_t left = a->pttl_ms * MSEC;

	x->placed.until = instant_max(x->placed.until, instant_add(e->core->now, left + left / 50));
}

/* The key was not there when the renewal ran, perhaps as soon as it was sent; but a command that was sent over an earlier connection may set it later. */
static bool renew_may_yet_be_placed(const struct engine *e, const struct lease *x, unsigned node, struct instant sent)
{
	return instant_before(sent, calls_overtaken_until(&e->calls, node, x->placed.since, sent));
}

/* What an executed renewal shows: a vote, or that the key is not ours. Returns whether the store denies a present vote. */
static bool renew_note_vote(struct engine *e, struct lease *x, struct round *r, const struct answer *a)
{
	bool denied = false;

	vote_gaps_note_key(x, a);
	switch (a->code) {
	case 'E':
		vote_gaps_extended(e, x, r, a->node);
		renew_note_end(e, x, a);
		x->votes[a->node] = renew_vote(x, r, a->node);
		break;
	case 'A':
		denied = vote_gaps_denied(e, x, a);
		x->votes[a->node] = nodeset_has(r->granted, a->node) ? renew_vote(x, r, a->node) : INSTANT_PAST;
		break;
	case 'X':
	case 'B':
	case 'K':
	case 'M':
		lease_owner_denied(e, x, a->code);
		denied = vote_gaps_denied(e, x, a);
		if (x->state == LEASE_ADOPTING)
			adoption_denied(x, a->node, a->code == 'B' || a->code == 'K');
		x->votes[a->node] = INSTANT_PAST;
		if (a->code != 'X' && !renew_may_yet_be_placed(e, x, a->node, r->calls.sent[a->node]))
			nodeset_remove(&x->placed.nodes, a->node);
		break;
	default: /* Q, F: nothing was changed */
		break;
	}
	rebase_note(e, r, a);
	return denied;
}

/* A quorum has renewed the lease after all, but late. The stores need not be asked again at once, unless an EXTEND or a request for a token waits for that. */
static void renew_came_late(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;

	x->ttl_us = renew_worth_us(x, r);
	if (TAILQ_EMPTY(&x->renewal->extends) && !x->renewal->wants_token) {
		admission_leave(&e->admission, &x->renewal->entry);
		x->renew_at = instant_max(e->core->now, instant_add(r->calls.begun, x->ttl_us / 3));
	}
	lease_owner_notify(e, x, NOTICE_SAFE);
	lease_safe(e, x);
	lease_schedule(e, x);
}

enum renew_outcome renew_answered(struct engine *e, struct round *r, const struct answer *a)
{
	struct lease *x = r->lease;
	bool denied;

	if (x->value.number != r->value.number)
		return RENEW_GOES_ON;
	placed_note_answer(&x->placed, a);
	if (x->state != LEASE_HELD && x->state != LEASE_ADOPTING)
		return RENEW_GOES_ON;
	denied = a->class == ANSWER_EXECUTED && renew_note_vote(e, x, r, a);
	if (x->state == LEASE_ADOPTING)
		return RENEW_IS_ADOPTION;
	if (denied && vote_gaps_are_too_many(e, x))
		return RENEW_EVICTED;
	if (lease_loss_is_due(x, e->core->conf.nodes, e->core->now))
		return RENEW_LEASE_OVER;
	if (!r->decided)
		return renew_decide(e, r);
	if (x->at_risk && !x->renewal->round && nodeset_count(r->granted) == engine_quorum(e) && nodeset_has(r->granted, a->node))
		renew_came_late(e, r);
	else
		lease_schedule(e, x);
	return RENEW_GOES_ON;
}

/* If this process was stopped for long, the lease may be over: that comes first. */
enum renew_outcome renew_expired(struct engine *e, struct round *r)
{
	if (lease_loss_is_due(r->lease, e->core->conf.nodes, e->core->now))
		return RENEW_LEASE_OVER;
	return renew_decide(e, r);
}

/* The first that was not looked at since a store came back. */
static struct lease *renew_next(const struct engine *e, struct leases *list)
{
	struct lease *x = TAILQ_FIRST(list);

	if (!x || x->renewal->back == e->back.count)
		return NULL;
	x->renewal->back = e->back.count;
	TAILQ_REMOVE(list, x, renewal->in_list);
	TAILQ_INSERT_TAIL(list, x, renewal->in_list);
	return x;
}

bool renew_make_due(struct engine *e)
{
	unsigned left = core_portion(e->core, BACK_A_STEP);
	struct lease *x;

	for (; left > 0 && (x = renew_next(e, &e->adopting)); left--)
		heap_set(&e->core->timers, &x->timer, e->core->now);
	for (; left > 0 && (x = renew_next(e, &e->risks)); left--) {
		if (x->renewal->round)
			continue;
		x->renew_at = e->core->now;
		x->renewal->paused_until.us = 0;
		lease_schedule(e, x);
	}
	return left > 0;
}
