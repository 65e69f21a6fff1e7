/* SPDX-License-Identifier: BSD-2-Clause */
/* How a hold ends: UNLOCK, the end of its session, a loss; until when clients may rely on it; votes that end early. */
#include "daemon/core/engine/holding.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/round/round.h"

/*
 * The holder may rely on it until D of the last renewal. Its clock may be slower than ours, by the drift of the longest lease that may vouch for D. When a
 * store denies its vote or its clock jumps, D becomes earlier than what the holder knows, and it is not known when the holder reads LOST.
 */
struct instant validity_of_lease(const struct engine *e, const struct lock *l)
{
	struct instant end = instant_max(lock_deadline(&e->table, l), l->lease.renewal->denied_deadline);

	return instant_max(instant_add(end, drift_us(l->lease.promised.ttl_us)), l->lease.relied_at_least);
}

/* For a lease that is being adopted: only the end of the votes of the previous run is known. */
struct instant validity_of(const struct engine *e, const struct claim *c)
{
	return c->lock->lease.state == LEASE_ADOPTING ? c->relied_until : validity_of_lease(e, c->lock);
}

/*
 * How long the key is to stay at the stores although the hold ends now and clients rely on it until `relied_until`. If nobody relies on it any more: for the
 * lock-delay. The mark of a semaphore stays as long as clients rely on it: it excludes no permit of its limit. 0: it is enough to leave the name alone for
 * that long.
 */
static int64_t validity_leave_us(const struct engine *e, const struct lock *l, struct instant relied_until)
{
	int64_t relied_us = instant_diff(relied_until, e->core->now);

	if (relied_us <= 0)
		return l->lease.delay_us;
	return lock_mark(l) > 0 && (l->lease.state == LEASE_HELD || l->lease.state == LEASE_ADOPTING) ? relied_us + drift_us(relied_us) + MSEC : 0;
}

/*
 * How a hold ends: by UNLOCK, with its session, or by a loss. Then the lease is handed on, released, or left alone as long as the holder may rely on it.
 * See ALGORITHMS.md, End of a hold.
 */

#define YIELD_US (150 * MSEC)

/* The lock has no holder any more. Its lease is still there. What readers leave, other readers may share. */
static inline void lock_vacate(struct engine *e, struct lock *l)
{
	holders_count_hold(e, l->holder);
	lock_remove_holder(l, l->holder);
	if (l->share) {
		l->lease.shared = true;
		lock_end_share(&e->table, l);
	}
	l->lease.relied_at_least = INSTANT_PAST;
	l->lease.renew_at = INSTANT_NEVER;
	lease_end_round(&l->lease);
	if (!renewal_is_none(l->lease.renewal))
		l->lease.renewal->wants_token = false;
}

/* The hold ends, and other readers go on. ghost: its client may rely on the lock until then. False: it is the last holder. */
static bool hold_part(struct engine *e, struct claim *c, struct instant ghost)
{
	struct lock *l = c->lock;

	if (lock_holders(l) < 2)
		return false;
	holders_count_hold(e, c);
	lock_remove_holder(l, c);
	l->share->ghost_until = instant_max(l->share->ghost_until, ghost);
	return true;
}

static bool hold_leave_others(struct engine *e, struct claim *c, struct instant ghost)
{
	if (!hold_part(e, c, ghost))
		return false;
	convert_look(e, c->lock);
	lease_refuse_extends_of(e, &c->lock->lease, c, REFUSED_CANCELLED);
	return true;
}

/*
 * The lease is over, and the next waiter asks for the name. If waiters here were served without a pause, by hand-overs or by rounds right after the release,
 * clients that poll would never win. So after a while of that the name is left alone for a moment.
 */
static void hold_give_back(struct engine *e, struct lock *l, enum cause why)
{
	struct contender *k = l->contender;
	bool waited = !TAILQ_EMPTY(&k->waiters);

	lease_move(e, &l->lease, LEASE_NONE, why);
	if (waited && e->core->conf.foreign && (k->handoffs > 0 || holders_are_many(e, l))) {
		k->handed_since.us = 0;
		contender_move(e, k, CONTENDER_YIELDING, CAUSE_USED_UP);
		heap_set(&e->core->timers, &k->timer, instant_add(e->core->now, YIELD_US));
		return;
	}
	if (!waited && k->handed_since.us)
		k->handed_since.us = 0;
	if (waited && e->core->conf.foreign && !k->handed_since.us)
		k->handed_since = e->core->now;
	acquire_next(e, l);
}

/* Nobody has the lease any more. Its key is deleted, or stays for leave_us. */
static inline void hold_release(struct engine *e, struct lock *l, int64_t leave_us, struct pending *p)
{
	if (leave_us > 0)
		kept_names_add(&e->kept, l->origin, e->core->now, leave_us, l->name.n);
	release_begin(e, &l->lease, leave_us > 0 ? RELEASE_LEAVE : RELEASE_DELETE, leave_us, p);
}

void hold_closing_over(struct engine *e, struct lock *l)
{
	/* With a lock-delay the key stays for exactly that long, whatever TTL it got from an earlier, longer lease or a late renewal. */
	hold_release(e, l, l->lease.delay_us, NULL);
	hold_give_back(e, l, CAUSE_BELIEF_OVER);
}

/* Earlier losses do not count any more. */
static void lock_begin_closing(struct lock *l)
{
	if (contender_is_none(l->contender))
		return;
	l->contender->closing++;
	l->contender->unacknowledged = 0;
}

/*
 * Nobody else gets the lock before that moment, and before its lock-delay is over. Some may wait for its lease without waiting for the lock: requests that
 * its owner sent during the adoption.
 */
static void lock_keep_closed(struct engine *e, struct lock *l, struct instant until, enum cause why)
{
	lease_move(e, &l->lease, LEASE_CLOSING, why);
	if (!instant_before(e->core->now, until)) {
		hold_closing_over(e, l);
		return;
	}
	heap_set(&e->core->timers, &l->lease.timer, until);
	holders_answer(e, l);
}

static void lock_close(struct engine *e, struct lock *l, struct instant until, enum cause why)
{
	lock_begin_closing(l);
	lock_keep_closed(e, l, until, why);
}

/* A reader unlocks: others keep the lock, or get it; or it is left alone while a reader that is gone may rely on it. False: none of these. */
static bool unlock_shared(struct engine *e, struct claim *c, struct pending *p)
{
	struct lock *l = c->lock;
	struct instant until = lock_haunted_until(l);

	if (hold_leave_others(e, c, INSTANT_PAST) || (!p && grant_hand_on(e, l))) {
		claim_free(&e->table, c);
	} else if (!instant_before(e->core->now, until) || validity_leave_us(e, l, until) > 0) {
		return false;
	} else {
		lock_vacate(e, l);
		lease_refuse_extends(e, &l->lease, REFUSED_CANCELLED);
		claim_free(&e->table, c);
		lock_close(e, l, until, CAUSE_UNLOCKED);
	}
	if (p)
		notices_add(&e->notices, NOTICE_RELEASED, NULL, p, NOT_REFUSED);
	return true;
}

void hold_unlock(struct engine *e, struct claim *c, int64_t keep_us, struct pending *p)
{
	struct lock *l = c->lock;

	metric_add(&e->core->metrics, METRIC_RELEASES_CLIENT, 1);
	if (l->share) {
		keep_us = validity_leave_us(e, l, lock_haunted_until(l));
		if (unlock_shared(e, c, p))
			return;
	}
	if (keep_us == 0 && !p && grant_hand_on(e, l)) {
		claim_free(&e->table, c);
		return;
	}
	lock_vacate(e, l);
	lease_refuse_extends(e, &l->lease, REFUSED_CANCELLED);
	claim_free(&e->table, c);
	hold_release(e, l, keep_us, p);
	hold_give_back(e, l, CAUSE_UNLOCKED);
}

static void claim_abandon_held(struct engine *e, struct claim *c, struct instant until)
{
	struct lock *l = c->lock;
	struct instant relied_until = instant_min(validity_of(e, c), until);
	bool at_once = !instant_before(e->core->now, until);
	int64_t leave_us;

	metric_add(&e->core->metrics, METRIC_RELEASES_DISCONNECT, 1);
	if (hold_leave_others(e, c, relied_until))
		return;
	if (at_once && l->lease.delay_us == 0 && grant_hand_on(e, l))
		return;
	relied_until = instant_max(relied_until, lock_haunted_until(l));
	at_once &= !instant_before(e->core->now, relied_until);
	leave_us = validity_leave_us(e, l, relied_until);
	lock_vacate(e, l);
	lease_refuse_extends(e, &l->lease, REFUSED_CANCELLED);
	if (!at_once && leave_us == 0) {
		lock_close(e, l, relied_until, CAUSE_SESSION_ENDED);
		return;
	}
	hold_release(e, l, leave_us, NULL);
	hold_give_back(e, l, CAUSE_SESSION_ENDED);
}

/*
 * The client of a lost hold no longer relies on it. If readers, or permits that share a mark, lost the lease together, all of them must say so; those of
 * other daemons have shares of their own. A lock-delay begins when the lease would have ended.
 */
static void loss_over(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;
	struct contender *k = l->contender;
	bool counts = c->closing != 0 && c->closing == k->closing && k->unacknowledged > 0;

	c->closing = 0;
	if (counts && --k->unacknowledged == 0 && l->lease.state == LEASE_CLOSING && l->lease.delay_us == 0)
		hold_closing_over(e, l);
}

void hold_abandon(struct engine *e, struct claim *c, struct instant until)
{
	struct lock *l = c->lock;

	switch (c->state) {
	case CLAIM_WAITING:
		wait_leave(e, c);
		wait_left(e, l->contender);
		convert_look(e, l);
		break;
	case CLAIM_LOST:
		lock_remove_loss(c);
		break;
	default:
		break;
	}
	l->name.refs++; /* otherwise the lock may be freed while this hold ends */
	if (c->state == CLAIM_HELD)
		claim_abandon_held(e, c, until);
	else if (c->state == CLAIM_LOST && !instant_before(e->core->now, until))
		loss_over(e, c);
	l->name.refs--;
	claim_free(&e->table, c);
	lock_drop_if_unused(&e->table, l);
}

/* What waits to hold the lock once more, by count=, must not get it anew as something else. One walk serves all who lose it together. */
static void lock_lose_counted(struct engine *e, const struct lock *l)
{
	unsigned left = l->contender->counted;
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&l->contender->waiters); c && left > 0; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		if (c->asking->count <= 1)
			continue;
		left--;
		if (lock_loss_of(l, c->session, claim_owner(c)))
			wait_withdraw(e, c, REFUSED_LOST);
	}
}

static void claim_lose(struct engine *e, struct claim *c, enum loss why)
{
	heap_cancel(&e->core->timers, &c->timer);
	metric_add(&e->core->metrics, METRIC_LOSSES, 1);
	metric_add(&e->core->metrics, why == LOSS_BROKEN ? METRIC_RELEASES_FORCED : METRIC_RELEASES_EXPIRED, 1);
	e->core->metrics.lost[why]++;
	if (c->limit == 0)
		core_name_lost(e->core, lock_name(c->lock));
	if (c->not_notified) {
		/* The client never knew of the grant. */
		notices_add(&e->notices, NOTICE_FORGOTTEN, c, NULL, NOT_REFUSED);
		return;
	}
	c->loss = why;
	lock_add_loss(&e->table, c);
	notices_add(&e->notices, NOTICE_LOST, c, NULL, NOT_REFUSED);
}

/* Until when the holders may rely on the lock if all lose it now. */
static struct instant lock_losers_rely_until(const struct engine *e, const struct lock *l, bool gone)
{
	struct instant until = lock_haunted_until(l);

	for (const struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		until = instant_max(until, gone ? validity_of_lease(e, l) : validity_of(e, c));
	return until;
}

/* One of all the holders. haunted: a reader that is gone may rely on it as well, so the lease stays closed whatever these answer. */
static void holder_lose(struct engine *e, struct claim *c, enum loss why, bool haunted)
{
	struct contender *k = c->lock->contender;

	claim_lose(e, c, why);
	if (c->state != CLAIM_LOST)
		return;
	c->closing = k->closing;
	k->unacknowledged += !haunted;
}

void hold_lose(struct engine *e, struct lock *l, enum loss why)
{
	struct claim *c;
	bool adopting = l->lease.state == LEASE_ADOPTING, haunted = lock_is_haunted(l, e->core->now);
	/*
	 * So many stores have no such key that the others are no quorum: nobody has the lock, and keeping it closed here would exclude nobody. (A broken key
	 * stays as long as it would have.) An adoption that fails for another reason has no votes that say how long the client may rely on it.
	 */
	bool gone = why == LOSS_EVICTED && (adopting ? adoption_is_denied : lease_is_gone)(&l->lease, e->core->conf.nodes);
	struct instant until;

	if (gone)
		l->lease.renewal->denied_deadline.us = 0;
	until = lock_losers_rely_until(e, l, gone);
	lock_contend(&e->table, l);
	lock_begin_closing(l);
	while (lock_holders(l) > 1) {
		c = l->holder;
		holders_count_hold(e, c);
		lock_remove_holder(l, c);
		holder_lose(e, c, why, haunted);
	}
	c = l->holder;
	lock_vacate(e, l);
	holder_lose(e, c, why, haunted);
	lock_lose_counted(e, l);
	lease_refuse_extends(e, &l->lease, REFUSED_LOST);
	lock_keep_closed(e, l, until, CAUSE_LOST);
}

void hold_lose_one(struct engine *e, struct claim *c, enum loss why)
{
	if (!hold_part(e, c, validity_of(e, c))) {
		hold_lose(e, c->lock, why);
		return;
	}
	claim_lose(e, c, why);
	convert_look(e, c->lock);
	lease_refuse_extends_of(e, &c->lock->lease, c, REFUSED_LOST);
}

void hold_lapse(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;
	struct instant until = lock_haunted_until(l);

	metric_add(&e->core->metrics, METRIC_RELEASES_EXPIRED, 1);
	notices_add(&e->notices, NOTICE_FORGOTTEN, c, NULL, NOT_REFUSED);
	if (hold_leave_others(e, c, INSTANT_PAST) || grant_hand_on(e, l))
		return;
	lock_vacate(e, l);
	lease_refuse_extends(e, &l->lease, REFUSED_CANCELLED);
	if (instant_before(e->core->now, until)) {
		lock_close(e, l, until, CAUSE_LAPSED);
		return;
	}
	hold_release(e, l, 0, NULL); /* its client never knew of it: it has no lock-delay */
	hold_give_back(e, l, CAUSE_LAPSED);
}

void hold_restore_loss(struct engine *e, struct claim *c, struct span name, enum loss why)
{
	c->lock = lock_find_or_add_text(&e->table, name);
	c->loss = why;
	lock_add_loss(&e->table, c);
}

/*
 * Whether an UNLOCK shows that the client no longer relies on the lost hold. The client may have sent the UNLOCK before it read LOST. Then it assumes that it
 * still holds what it locked several times, or has asked for again.
 */
static bool loss_is_acknowledged(const struct claim *c, const struct claims *of_session)
{
	const struct claim *other;

	TAILQ_FOREACH(other, of_session, in_session)
		if (other->lock == c->lock && other->state == CLAIM_WAITING && claim_same_owner(other, c))
			return false;
	return c->count == 1 && !c->asked_again;
}

void hold_acknowledge(struct engine *e, struct claim *c, const struct claims *of_session)
{
	if (loss_is_acknowledged(c, of_session))
		loss_over(e, c);
	hold_forget(e, c);
}

void hold_acknowledge_until(struct engine *e, struct claim *c, const struct claims *of_session, struct instant until)
{
	c->lock->name.refs++; /* otherwise the end of the lease may free the lock */
	if (!c->acknowledged && loss_is_acknowledged(c, of_session))
		loss_over(e, c);
	c->lock->name.refs--;
	c->acknowledged = true;
	heap_set(&e->core->timers, &c->timer, until);
}

void hold_forget_late(struct engine *e, struct claim *c)
{
	lock_remove_loss(c);
	notices_add(&e->notices, NOTICE_FORGOTTEN, c, NULL, NOT_REFUSED);
}

void hold_ask_again(const struct lock *l, const struct session *session, struct span owner)
{
	struct claim *loss = lock_loss_of(l, session, owner);

	if (loss)
		loss->asked_again = true;
}

void hold_forget(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	lock_remove_loss(c);
	claim_free(&e->table, c);
	lock_drop_if_unused(&e->table, l);
}

/*
 * A store reports that somebody has broken the lock. The key stays there for as long as it would have anyway. So the others wait until the holder, which
 * knows nothing yet, can no longer rely on it.
 */
static void hold_broken(struct engine *e, struct lock *l)
{
	if (l->lease.state == LEASE_HELD)
		l->lease.relied_at_least = validity_of_lease(e, l);
}

void lease_owner_notify(struct engine *e, struct lease *x, enum notice_kind kind)
{
	const struct lock *l = lock_of_lease(x);

	for (struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		notices_add(&e->notices, kind, c, NULL, NOT_REFUSED);
}

void lease_owner_denied(struct engine *e, struct lease *x, char code)
{
	x->broken |= code == 'X';
	if (code == 'X')
		hold_broken(e, lock_of_lease(x));
}

void lease_owner_evicted(struct engine *e, struct lease *x)
{
	hold_lose(e, lock_of_lease(x), x->broken ? LOSS_BROKEN : LOSS_EVICTED);
}

void lease_owner_expire(struct engine *e, struct lease *x)
{
	hold_lose(e, lock_of_lease(x), x->broken ? LOSS_BROKEN : x->auto_renew ? LOSS_QUORUM : LOSS_EXPIRED);
}

#define LOST_A_STEP      64   /* the others have timers that are due */
#define SCHEDULED_A_STEP 2048 /* buckets of the table of names */

/* For most locks, nothing else is done than reading and writing this: without the prefetch the step waits for memory. */
static inline void lock_prefetch(const struct lock *l)
{
	__builtin_prefetch(&l->name);
	__builtin_prefetch(&l->contender);
	__builtin_prefetch(&l->lease.renewal);
	__builtin_prefetch(&l->lease.promised);
	__builtin_prefetch(l->lease.votes);
}

static void lock_votes_fall(struct engine *e, struct lock *l, unsigned node, int64_t sooner_us)
{
	struct lease *x = &l->lease;

	if (l->contender->state == CONTENDER_ACQUIRING && l->contender->round)
		l->contender->round->votes.until[node] = instant_add(l->contender->round->votes.until[node], -sooner_us);
	if (x->state != LEASE_HELD && x->state != LEASE_ADOPTING)
		return;
	if (x->state == LEASE_HELD)
		x->relied_at_least = validity_of_lease(e, l);
	x->votes[node] = instant_add(x->votes[node], -sooner_us);
}

/* A store's clock jumped ahead, or another server is at its address now: all its votes end this much sooner. */
static void votes_fall_of(struct engine *e, unsigned node)
{
	int64_t sooner_us = e->members.votes_fall_us[node];
	struct map_walk walk = {0};
	struct map_node *at;

	e->members.votes_fall_us[node] = 0;
	e->fell_us[node] += sooner_us;
	e->fell = true;
	while (map_walk(&e->table.map, &walk, &at)) {
		if (walk.ahead)
			lock_prefetch(container_of(walk.ahead, struct lock, name.node));
		for (; at; at = at->next)
			lock_votes_fall(e, container_of(at, struct lock, name.node), node, sooner_us);
	}
}

/*
 * From now on it is known when the leases end, and a request finds those that are over: see core.late. Setting their timers costs more than that, so the next
 * steps do it: a loss is reported, and a renewal begins, that much later.
 */
void votes_fall_schedule(struct engine *e)
{
	unsigned left = core_portion(e->core, SCHEDULED_A_STEP);
	struct map_node *at;

	while (left > 0 && (e->falls = map_walk(&e->table.map, &e->fall_walk, &at))) {
		for (left--; at; at = at->next) {
			struct lease *x = &container_of(at, struct lock, name.node)->lease;

			if (x->state == LEASE_HELD) /* for an adoption they are counted when the next vote comes */
				lease_schedule(e, x);
		}
	}
	if (e->falls)
		heap_set(&e->core->timers, &e->back.timer, e->core->now);
}

void votes_fall(struct engine *e)
{
	e->members.votes_fall = false;
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		if (!e->members.votes_fall_us[i])
			continue;
		votes_fall_of(e, i);
		e->falls = true;
		e->fall_walk = (struct map_walk){0};
	}
	if (e->falls)
		votes_fall_schedule(e);
}

static struct lease *lease_that_is_over(const struct engine *e)
{
	struct timer *t = heap_first(&e->core->timers);
	struct lease *x = t && t->kind == TIMER_LEASE ? container_of(t, struct lease, timer) : NULL;

	return x && x->state == LEASE_HELD && lease_loss_is_due(x, e->core->conf.nodes, e->core->now) ? x : NULL;
}

void __attribute__((cold)) votes_fall_lose_over(struct engine *e)
{
	unsigned left = core_portion(e->core, LOST_A_STEP);
	struct lease *x;

	while (left-- > 0 && (x = lease_that_is_over(e)))
		lease_owner_expire(e, x);
	e->core->late = true; /* some may be left, after other timers */
}
