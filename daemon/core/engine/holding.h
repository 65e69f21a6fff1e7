/* SPDX-License-Identifier: BSD-2-Clause */
/* How a hold begins, is renewed, adopted, broken, and ends. */
#ifndef CORE_HOLDING_H
#define CORE_HOLDING_H

#include "daemon/core/lock/lease.h"
#include "daemon/core/round/engine_data.h"
#include "daemon/core/round/round.h"

/*
 * A new token for a lease that has used up its range. A renewal lifts the fences to a floor beyond all that the stores have shown this daemon, and beyond the
 * range of the lease. The token is the lease's alone if Q stores that are sure answer exactly that floor.
 * See ALGORITHMS.md, Shared locks.
 */

/* The renewal begins: if its lease wants a token, it asks for one. */
void rebase_begin(struct engine *e, struct round *r);
/* A store has answered: perhaps it has extended the key. */
void rebase_note(struct engine *e, struct round *r, const struct answer *a);

/* Waiters become holders of a lease. Asks no store. See ALGORITHMS.md, Hand-over; Shared locks. */

/* The other waiting LOCKs of this holder's owner, in its mode, are granted as reentrant. */
void holders_fold(struct engine *e, struct claim *holder);
/* The same; then, in portions, requests that do not wait are refused, because somebody has the name. */
void holders_answer(struct engine *e, struct lock *l);
/* Whether a reader that asks now with this priority may join the holders: nobody who waits precedes it. */
bool holders_are_open(const struct engine *e, const struct lock *l, unsigned priority);
/* It joins them at once. False: not now. */
bool holders_join_at_once(struct engine *e, struct claim *c);
/* Whether the name has passed from holder to holder here, under one lease or several, for so long that clients elsewhere must get a chance. */
bool holders_are_many(const struct engine *e, const struct lock *l);
void holders_count_hold(struct engine *e, const struct claim *c); /* a hold is over: counts how long it was */

/* How a hold begins: a round wins the lease, or a holder ends and its lease is handed on. */

/* The round won with this token. The first waiter has the lease, if the round asked on its terms; otherwise what was won is released. */
void grant_won(struct engine *e, struct round *r, int64_t fence);
/* The hold has ended. Gives the lease to the next local waiter without a round; false: a hand-over is not allowed. */
bool grant_hand_on(struct engine *e, struct lock *l);
/* The round has confirmed the adoption: the holder of the previous run holds the lock again. */
void grant_adopted(struct engine *e, struct lock *l, const struct round *r);

/* Readers have the lock, and a writer elsewhere waits since this moment, according to its ticket: readers that came later do not join them. */
void grant_barred(struct engine *e, struct lock *l, int64_t writer_us);
void grant_wanted(struct engine *e, struct span name);

/* An owner that holds a lock alone shares it from now on; and those who wait for a held lock. See ALGORITHMS.md, Shared locks. */

/* This exclusive hold is shared from now on. Others join as soon as the stores have it in the shared form and have given a token. */
void convert_to_shared(struct engine *e, struct claim *holder);
/* The line of a held lock may move: a waiter or a holder has left, or the lease was renewed. Asks for the token that readers need, and admits them. */
void convert_look(struct engine *e, struct lock *l);
/* An answer to this renewal was counted. */
void convert_renewed(struct engine *e, struct round *r);

/* Until when clients may rely on their holds, and how long a name stays reserved after that. See ALGORITHMS.md, End of a hold. */

/* Until when the holder of a held lock may rely on it, if nothing more is sent to it and nothing is renewed. */
struct instant validity_of_lease(const struct engine *e, const struct lock *l);
/* The same for one of its holders, also while the lease is being adopted. */
struct instant validity_of(const struct engine *e, const struct claim *c);

/* How a hold ends: by UNLOCK, with its session, by a loss; and when nobody relies on it any more. */

/*
 * The holder's last UNLOCK (the caller has decremented the count): gives the lock up, and frees the claim. keep_us > 0: the key stays for that long. p:
 * answered when a quorum has confirmed the release; NULL: nobody waits for that.
 */
void hold_unlock(struct engine *e, struct claim *c, int64_t keep_us, struct pending *p);
/*
 * The session of this claim, in whatever state, has ended. until: how long its client may act on the lock at most; PAST: it certainly no longer does; NEVER:
 * as long as it may rely on it. Frees the claim, without a notice.
 */
void hold_abandon(struct engine *e, struct claim *c, struct instant until);
/* The holders have lost the lock, and the reason is reported to them. The name is left alone for as long as they may rely on it. */
void hold_lose(struct engine *e, struct lock *l, enum loss why);
/* The same for this holder alone; other readers keep the lock. */
void hold_lose_one(struct engine *e, struct claim *c, enum loss why);
/* Remembers a loss of the previous run. The claim has its session and owner already. */
void hold_restore_loss(struct engine *e, struct claim *c, struct span name, enum loss why);
/*
 * An UNLOCK was answered LOST: the holder has acknowledged the loss, and no longer relies on the lease. Forgets and frees the claim. of_session: the claims
 * of its session, from which it may have been removed.
 */
void hold_acknowledge(struct engine *e, struct claim *c, const struct claims *of_session);
/* The same for a session that may repeat the UNLOCK: until then the loss is remembered, and answers it again. */
void hold_acknowledge_until(struct engine *e, struct claim *c, const struct claims *of_session, struct instant until);
/* That time is over. */
void hold_forget_late(struct engine *e, struct claim *c);
/* LEASE_CLOSING: this owner asks for the name again. If the loss is its own, its client may not know of it. */
void hold_ask_again(const struct lock *l, const struct session *session, struct span owner);
/* Forgets a loss, and frees the claim. */
void hold_forget(struct engine *e, struct claim *c);
/* A renewal found another value where ours should be. */
void hold_contested(struct engine *e, struct lock *l);
/* Nobody has asked in time for what was granted: the lock goes to the next waiter. */
void hold_lapse(struct engine *e, struct claim *c);
/* LEASE_CLOSING: nobody relies on the lease any longer. */
void hold_closing_over(struct engine *e, struct lock *l);

/* Notifies the holders of a lock about its lease. */

void lease_owner_notify(struct engine *e, struct lease *x, enum notice_kind kind);
/* A renewal did not find our value; code: of its answer. */
void lease_owner_denied(struct engine *e, struct lease *x, char code);
void lease_owner_evicted(struct engine *e, struct lease *x); /* it is lost, as its keys are not ours any more */
void lease_owner_expire(struct engine *e, struct lease *x);  /* its loss is due: see lease_loss_is_due() */

/* Votes that end sooner than expected, because the clock of their store has jumped. See ALGORITHMS.md, Jumping clocks. */

/* Lowers the votes that fall: members.votes_fall. */
void votes_fall(struct engine *e);
void votes_fall_schedule(struct engine *e); /* sets the timers of some leases: engine.falls */
/*
 * Votes fell: a lease that this has ended is lost before another line is served, which would be answered OK. Of many, some are lost in the next steps:
 * core.late.
 */
void votes_fall_lose_over(struct engine *e);

/*
 * Stores that may have been without the key for a while although their votes stand: it was gone, or had another value, or came there after the grant. Such a
 * vote has a gap: it vouches only from the moment when the store confirmed that it has the key. Gaps are added up until all votes that stand were confirmed
 * since the last one: if the others are no quorum when a store denies its vote, somebody else may have held the lock. See ALGORITHMS.md, Renewal.
 */

struct engine;

/* The previous process has handed over the votes, and reports a gap for these nodes: a call of it may still put the key back there. */
void vote_gaps_handed_over(struct engine *e, struct lease *x, struct nodeset nodes);

/* The watchdog renews held leases. The result of an answer is a value, on which the caller acts. */

/* One renewal round of a held lease. */
void renew_begin(struct engine *e, struct lease *x);
/* The result of an answer to a renewal or an adoption, or of the end of the round's time. If the lease is not ours any more, the caller moves it. */
enum renew_outcome {
	RENEW_GOES_ON, /* the caller has nothing to do */
	RENEW_IS_ADOPTION,  /* the answer was noted: adopt_decide() concludes */
	RENEW_EVICTED, /* somebody else may have held the lock */
	RENEW_LEASE_OVER,    /* the loss is due: see lease_loss_is_due() */
};
enum renew_outcome renew_answered(struct engine *e, struct round *r, const struct answer *a);
enum renew_outcome renew_expired(struct engine *e, struct round *r);
/* A renewal is due: it begins now, or once it is admitted. */
void renew_due(struct engine *e, struct lease *x);
/* A quorum is back: leases that are at risk are renewed now, not at their next try, and those of the previous run are adopted. False: there are more. */
bool renew_make_due(struct engine *e);

/* Takes over the locks that sessions of the previous run held. */

/* A claim that the previous run granted, of (c->session, owner, ttl, delay, renew, fence), holds the lock until its adoption is decided:
 * NOTICE_ADOPTED or NOTICE_LOST. The name has no holder. */
void adopt_expect(struct engine *e, struct claim *c, const struct prior_lease *from);
/* All records are read, and the id of the daemon is known: asks as soon as there is a quorum. A value of another daemon is lost without asking. */
void adopt_start(struct engine *e, struct lease *x);
/* Forgets what was expected, or the loss, of this claim. Sends nothing; frees the claim. */
void adopt_drop(struct engine *e, struct claim *c);
/* The result of the adoption's timer, or of an answer that is counted already. The caller acts on a decision. */
enum adopt_outcome {
	ADOPT_GOES_ON,
	ADOPT_WON,    /* a quorum vouches for it: grant_adopted() */
	ADOPT_DENIED, /* too many stores have no key of it */
	ADOPT_OVER,   /* its time is over */
};
enum adopt_outcome adopt_fired(struct engine *e, struct lease *x);
enum adopt_outcome adopt_decide(struct engine *e, struct round *r);
void adopt_go_on(struct engine *e, struct lease *x); /* it is admitted */
void adopt_expired(struct engine *e, struct round *r);

/* Who has a name: SHOW asks the stores. */

/* Asks the stores who has the name of the pending, and answers it. */
void ask_holder_begin(struct engine *e, struct pending *p);
void ask_holder_answered(struct engine *e, struct round *r, const struct answer *a);
void ask_holder_expired(struct engine *e, struct round *r);

/* BREAK of a lock that no session of this daemon holds. First the stores are asked what they have; then the same value is broken at each of them. */

/* Answers the pending, by NOTICE_SEEN: its `free` says that nobody has the lock; otherwise elsewhere.pttl_ms says in how long it is free. */
void break_begin(struct engine *e, struct pending *p);
void break_answered(struct engine *e, struct round *r, const struct answer *a);
void break_expired(struct engine *e, struct round *r);
/* EVENT_BROKEN: the stores are asked at once whether that is true, as the message may be old. */
void break_reported(struct engine *e, struct span name);

#endif
