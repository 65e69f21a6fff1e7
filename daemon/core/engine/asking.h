/* SPDX-License-Identifier: BSD-2-Clause */
/* How a name is asked for: its ticket and its waiters, rounds, the pause before the next round, and what must be deleted afterwards. */
#ifndef CORE_ASKING_H
#define CORE_ASKING_H

#include "daemon/core/lock/lock.h"
#include "daemon/core/round/engine_data.h"
#include "daemon/core/round/round.h"

/*
 * Outstanding releases. From release_begin() on our value is dead, and so are earlier values that may be in its place. Each store that may have one of them
 * is asked to delete it until it has confirmed, or the key has expired by itself.
 * See ALGORITHMS.md, Outstanding releases.
 */

/* RELEASE_LEAVE leaves the key for px_us. The pending, if any, is answered once a quorum has confirmed. */
void release_begin(struct engine *e, struct lease *x, enum release_kind kind, int64_t px_us, struct pending *p);
void release_again(struct engine *e, struct release *r, struct nodeset nodes, struct instant until); /* a release of the previous process */
struct instant release_until(const struct placed *p); /* no store has the value after this moment */
void release_round(struct engine *e, struct round *r); /* deletes the value of a round that is not won, or won for nobody */
struct instant release_retry_at(struct engine *e); /* when to send again to a store that refused or was busy; each call returns a later moment */
bool release_waits(struct engine *e, struct release *r); /* it waits for admission from now on; false: it may begin now */
void release_admitted(struct engine *e, struct release *r); /* it no longer waits: requests for its name may go on */
void release_waits_no_more(struct engine *e, struct release *r);
void release_go_on(struct engine *e, struct release *r); /* the release is admitted */
void release_answered(struct engine *e, struct release *r, const struct answer *a);
void release_fired(struct engine *e, struct release *r);
bool release_resume_some(struct engine *e); /* a store is back, or works again: sends what it missed, once admitted. False: there is more */
bool release_waits_since(const struct engine *e, uint32_t count); /* some release was last looked at before e->back.count had this value */
void release_send_put_off(struct engine *e, const struct name *name); /* sends the releases of this name that were put off, where there is room */
void release_hurry_all(struct engine *e); /* the daemon stops: sends to all stores that may be asked, whatever the releases wait for */
/* The daemon stops: answers every UNLOCK sync=yes without waiting for the stores. Returns whether there was one. */
bool release_answer_syncs(struct engine *e);

/* The waiters of a name in this daemon, in order: questions about them, and about what keeps them waiting. wait.c acts on them. */

#define WAITERS_HURRY_US SEC /* for a request that does not wait, the stores are asked no longer than this */

enum waiters_part {
	WAITERS_OVERDUE,   /* claims whose wait is over; of those that do not wait, those that asked a second ago or earlier */
	WAITERS_IMPATIENT, /* these, and all claims that do not wait */
	WAITERS_ALL,
};

enum refusal waiters_overdue_why(const struct contender *k); /* why overdue claims do not have the lock when the name is asked for again */

/* Tickets: the place of a name in the queue among daemons. */

void ticket_take(struct engine *e, struct contender *k); /* takes a ticket for the first patient waiter, unless the present one still fits */
/* Somebody waits, but the ticket is wrong: because of a priority the first waiter has changed, or a writer has come after readers. */
bool ticket_is_outdated(const struct contender *k);
/* Somebody waits, but fewer than a quorum of stores know the right ticket: a wake-up does not come, or comes too late. */
bool ticket_is_unseen(const struct engine *e, const struct contender *k);
/* The place of this waiter among the tickets, by the clock of the stores. */
int64_t ticket_place_us(const struct engine *e, const struct claim *c);
/* The place of a waiter that asks at this moment. */
int64_t ticket_place_since(const struct engine *e, struct instant asked_at, int64_t priority);
struct span ticket_text(const struct engine *e, const struct contender *k); /* in memory of the effects; "" = no ticket */
void ticket_send(struct engine *e, struct release *r); /* the withdrawal is admitted */
void ticket_hurry_all(struct engine *e); /* the daemon stops: sends all withdrawals that wait */
void ticket_withdraw_at(struct engine *e, struct name *name, const struct stamp *ticket, struct nodeset nodes); /* once, as soon as they are not too busy */
void ticket_spend(struct engine *e, struct contender *k, struct nodeset granted);
void ticket_end(struct engine *e, struct contender *k); /* nobody waits for the name any more, except those of ticket_returns */

/*
 * Readers of several daemons hold a name together: the stores keep a share for each daemon in one key. A lease is shared as soon as a store was asked to
 * share its value. See ALGORITHMS.md, Readers of several daemons.
 */

/* A renewal or an adoption begins. If readers hold the lease and it is not shared yet, it is shared from now on. */
void shared_lease_begin(struct round *r);
/* The next renewal is due at this moment, or earlier if it was due earlier. */
void shared_lease_ask_again(struct engine *e, struct lease *x, struct instant at);
/* Readers hold the lock here, and somebody elsewhere waits, perhaps a reader. The lease is shared by the next renewal, which is due now. */
void shared_lease_open(struct engine *e, struct lock *l);
/* A reader that does not wait was refused because of a writer elsewhere: once a second the stores are asked whether that writer still waits. */
void shared_lease_refused(struct engine *e, struct lock *l);

/*
 * The line of the lock has changed. If a writer waits for this share, its ticket is sent with each renewal; otherwise the ticket is withdrawn. While readers
 * wait because of a writer elsewhere, renewals show whether that writer still waits.
 */
void shared_lease_line_up(struct engine *e, struct lock *l);
/* The ticket in this renewal; "": none. */
struct span shared_lease_ticket(struct engine *e, const struct round *r);
void shared_lease_show(struct engine *e, struct lease *x, struct call *call, struct span ticket);

/* How a wait ends without a grant: claims are refused, withdrawn, or out of time; and how a name waits for a quorum of stores. */

/* Refuses this part of the waiters, and removes them. The state of the name stays. False: there are many, and some are left for the next step. */
bool wait_refuse_part(struct engine *e, struct contender *k, enum refusal why, enum waiters_part part);
/* The name is looked at again in the next step. */
void wait_look_soon(struct engine *e, struct contender *k);
/* The same, before the name goes on waiting; sets k->crowd if some are left. False: nobody waits any more, and the wait is over. */
bool wait_continue(struct engine *e, struct contender *k, enum refusal why, enum waiters_part part);
/* A claim left. If it was the last, the wait is over; if a round is under way, only when that round ends. */
void wait_left(struct engine *e, struct contender *k);
/* Sets the timer of a name that waits: to this moment, or earlier if its first claim is overdue earlier. NEVER: only for an overdue claim. */
void wait_look_at(struct engine *e, struct contender *k, struct instant at);
/* Removes a claim without an answer. */
void wait_leave(struct engine *e, struct claim *c);
/* Too few usable stores to ask: waiters keep their place until there are enough. */
void wait_for_quorum(struct engine *e, struct contender *k);
/* The wait of the claim is over. */
void wait_fired(struct engine *e, struct claim *c);

/* Changes the end of the wait of a claim. */
void wait_set_end(struct engine *e, struct claim *c, struct instant until);
/* The session of this waiting claim has sent its last line. A round under way decides; without a round, a claim that would go on waiting is withdrawn. */
void wait_finish_up(struct engine *e, struct claim *c);
/* A waiting claim is withdrawn: NOTICE_REFUSED. */
void wait_withdraw(struct engine *e, struct claim *c, enum refusal why);

void wait_announce_all(struct engine *e, struct contender *k);

/* Announces, for WATCH, those that wait for a holder and were not announced yet. If nobody watches, that costs one test. */
static inline void wait_announce(struct engine *e, struct contender *k)
{
	if (e->watched > 0)
		wait_announce_all(e, k);
}

/* Split votes: which rounds ask one store first, which store that is, and the pause after a round that nobody won. */

#define SPLIT_TRIES 3 /* a request that does not wait is answered BUSY after this many rounds that were split or found a holder */
#define RACE_MOST 16 /* a value that splits this many rounds in a row is not a rival's: its daemon is dead, and it ends by its TTL */
/* The round is over: notes the value that was in the way at each store. */
void split_remember(const struct engine *e, struct contender *k, const struct round *r);
/* For how long, at least, one and the same value has been in the way at a quorum; -1: no such value was seen. The result saturates at some weeks. */
int64_t split_seen_ms(const struct engine *e, const struct contender *k);
/* The votes were split: for a while the name asks its leading store first, unless that store was taken. Returns the pause before the next round, us. */
int64_t split_note(struct engine *e, struct contender *k, const struct round *r, bool leader_taken);
/* For a request that does not wait: shortens the pause after an undecided round to about a round trip. */
void split_hurry(struct engine *e, struct contender *k);

/* Rounds that ask for a name. The outcome of a round is a value, on which the caller acts. */

/* Asks the stores for the name, for the first waiter, now or once it is admitted. No round is under way, and the name is not ours. */
void acquire_begin(struct engine *e, struct contender *k, enum cause why);
bool acquire_admitted(struct engine *e, struct contender *k); /* it has waited for admission; false: it keeps waiting, until release_admitted() */
void acquire_next(struct engine *e, struct lock *l); /* the name is not ours any more: asks for it if somebody waits */
/*
 * An answer, or the end of the round's time. ROUND_PENDING: the round goes on, or was decided earlier. Any other value decides it now; ROUND_WON sets the
 * token.
 */
enum round_outcome acquire_answered(struct engine *e, struct round *r, const struct answer *a, int64_t *ret_token);
enum round_outcome acquire_expired(struct engine *e, struct round *r, int64_t *ret_token);
/*
 * The timer of an undecided round has fired. If the leading store has not answered in time, the others are asked as well. If busy stores were left out, those
 * with room by now are asked. False: no store is asked, and the round ends.
 */
bool acquire_ask_more(struct engine *e, struct round *r);

/* What follows a round that was not won, and what shortens the pause of a name that waits. */

/* Releases what the round placed. Then the name waits, asks again, or is idle. */
void retry_after(struct engine *e, struct round *r, enum round_outcome why);

/* A store published that the name was freed. Such a message may be lost, repeated or late. */
void retry_woken(struct engine *e, struct span name, unsigned node);
bool retry_quorum_back(struct engine *e); /* enough usable stores again: asks for names in CONTENDER_NO_QUORUM. False: there are more */

#endif
