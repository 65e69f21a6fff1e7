/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the engine: the line of a lock, the rounds (acquire.c, renew.c, debt.c) and what they need of engine.c. */
#ifndef CORE_ENGINE_PART_H
#define CORE_ENGINE_PART_H

#include "daemon/core/adoption.h"
#include "daemon/core/engine.h"
#include "daemon/core/round.h"
#include "daemon/core/waiters.h"

#define RETRY_US (100 * MSEC) /* after what refused, or had too much to do */
#define RETRY_APART_US 50     /* releases and withdrawals are repeated no faster: a store that refuses a hundred thousand of them costs a few per cent of a core */

/* acquire.c: asks for the lock, for the first in line, now or when it is its turn. The lock has no round under way and is not ours. */
void acquire_begin(struct engine *e, struct lock *l, enum cause why);
void acquire_start(struct engine *e, struct lock *l, enum cause why); /* now */
void acquire_next(struct engine *e, struct lock *l); /* the lock is not ours any more: the next in line, or nobody */
/* An answer, or the end of the round's time. ROUND_PENDING: it goes on, or was decided before. Else it is decided; ROUND_WON tells the token. */
enum round_outcome acquire_answered(struct engine *e, struct op *op, const struct answer *a, int64_t *ret_token);
enum round_outcome acquire_expired(struct engine *e, struct op *op, int64_t *ret_token);

/* Enough usable stores again: names without a quorum are asked for. */
void acquire_quorum_back(struct engine *e);

/* retry.c: the round is over, and was not won. */
void retry_after(struct engine *e, struct op *op, enum round_outcome why);

/* look.c: who has it, for those who ask. */
void look_answered(struct engine *e, struct op *op, const struct answer *a);
void look_expired(struct engine *e, struct op *op);

/*
 * The leading node has not answered for as long as it is waited for: the others are asked as well. Or some were left out, having too much to do: those that
 * have room by now are asked. False: the round is at its end.
 */
bool acquire_goes_on(struct engine *e, struct op *op);

/* split.c: rounds that nobody won. */
#define SPLIT_TRIES 3 /* rounds for who does not wait */
#define RACE_MOST 16 /* a value that splits the votes for longer is no rival's, but the key of nobody: it ends by its TTL */
/* A round begins: which node it asks first, -1: all at once. Uses up one of the rounds that do so. */
int split_take_leader(const struct engine *e, struct lock *l);
/* A quorum has answered, and the votes are split: is it by rivals, of whom one may win? Else by a key of nobody. */
bool split_is_race(const struct engine *e, const struct op *op);
int64_t split_lasting_us(const struct engine *e); /* how long a round waits for a slow store that can help against such a key */
/* The votes were split: the name asks its leading node first for a while, unless this round did so. Returns the pause before the next round, in microseconds. */
int64_t split_note(struct engine *e, struct lock *l, const struct op *op, bool led);
/* The pause after a round that decided nothing ends after a round trip: for a request that does not wait. */
void split_hurry(struct engine *e, struct lock *l);

/* grant.c: how a hold begins. The round won with this token: the first in line has the lease. */
void grant_won(struct engine *e, struct op *op, int64_t fence);
/* The holder is done: the lease goes to the next local waiter without a round; false: it may not. */
bool grant_hand_on(struct engine *e, struct lock *l);
/* Nobody elsewhere could have had it for long: it went from one to the next here, under one lease or several. */
bool grant_is_due_elsewhere(const struct engine *e, const struct lock *l);
/* Other requests of the holder are granted as reentrant. */
void grant_fold(struct engine *e, struct lock *l);
void grant_count_hold(struct engine *e, const struct claim *c); /* a hold is over: how long it was */

/* turn.c: the place in line among daemons. */
#define TICKET_MAX (VALUE_MAX - 1)
void turn_take(struct engine *e, struct lock *l); /* a ticket for the first in line, if it waits and there is none */
bool turn_is_unseen(const struct engine *e, const struct lock *l); /* somebody waits, and fewer than a quorum of stores know the ticket: no wake-up comes */
struct span turn_text(const struct engine *e, const struct lock *l); /* in memory of the effects; "" = no ticket */
void turn_send(struct engine *e, struct op *op); /* WITHDRAW: its turn has come */
void turns_hurry(struct engine *e); /* the daemon stops: there will be no turn */
void turn_withdraw(struct engine *e, struct lock *l); /* the ticket is kept, for later */
void turn_spend(struct engine *e, struct lock *l, struct nodeset granted);

/* renew.c: one renewal round of a held lock. */
void renew_begin(struct engine *e, struct lock *l);
/* What an answer to a renewal or an adoption, or the end of its time, comes to. Where the lease is not ours any more, nothing is moved yet. */
enum renew_outcome {
	RENEW_GOES_ON, /* there is nothing for others to do */
	RENEW_ADOPTS,  /* it was noted: adopt_decide() */
	RENEW_EVICTED, /* somebody else may have held it */
	RENEW_OVER,    /* it is as good as over */
};
enum renew_outcome renew_answered(struct engine *e, struct op *op, const struct answer *a);
enum renew_outcome renew_expired(struct engine *e, struct op *op);
/* Its time has come: it begins now, or when it is its turn. */
void renew_due(struct engine *e, struct lock *l);
/* A quorum is back: leases that are at risk are renewed now, not at their next try, and those of the former life are adopted. */
void renew_overdue(struct engine *e);

/* adopt.c. A claim that the former life granted, of (c->session, owner, ttl, delay, renew, fence), holds the lock until its adoption is decided:
 * NOTICE_ADOPTED or NOTICE_LOST. The name has no holder. */
void adopt_expect(struct engine *e, struct claim *c, const struct prior_lease *from);
void adopt_start(struct engine *e, struct lock *l); /* as soon as there is a quorum */
/* Neither expected nor lost any more, and nothing is sent. The claim is freed. */
void adopt_drop(struct engine *e, struct claim *c);
void adopt_fired(struct engine *e, struct lock *l);
void adopt_go_on(struct engine *e, struct lock *l); /* its turn has come */
void adopt_decide(struct engine *e, struct op *op); /* an answer was noted */
void adopt_expired(struct engine *e, struct op *op);

/* debt.c: our value is dead from here on; every node where it may stand is told until it says so, or the key has expired by itself.
 * So are those of former lives that may stand in its place. OP_RELEASE deletes, OP_LEAVE leaves the key for px_us. The pending, if any, is answered once
 * a quorum has confirmed. */
void debt_begin(struct engine *e, struct lock *l, enum op_kind kind, int64_t px_us, struct pending *p);
struct instant debt_retry_at(struct engine *e); /* when to ask again what refused, or had too much to do: each call takes a moment of its own */
void debt_go_on(struct engine *e, struct op *op); /* its turn has come */
void debt_answered(struct engine *e, struct op *op, const struct answer *a);
void debt_fired(struct engine *e, struct op *op);
void debts_resume(struct engine *e); /* a store is back, or works again: what it missed or was put off has its turn before those who ask */
void debts_tell(struct engine *e, const struct lock *l); /* of this lock: what was put off is sent now, where there is room */
void debts_hurry(struct engine *e); /* the daemon stops: there will be no turn */

/* wait.c: claims in line that do not stay there get their answer. Moves nothing. */
void wait_refuse_part(struct engine *e, struct lock *l, enum refusal why, enum waiters_part part);
/* The same, before the name goes on waiting. False: nobody is left, and the wait is over. */
bool wait_continue(struct engine *e, struct lock *l, enum refusal why, enum waiters_part part);
/* Nobody here waits any more: our place among daemons is given back, and the name asks for nothing. */
void wait_over(struct engine *e, struct lock *l, enum cause why);
/* Somebody left: if it was the last, the wait is over. A round under way sees to that when it ends. */
void wait_left(struct engine *e, struct lock *l);
/* The lock, which waits, is looked after then, or when the first in line is overdue. NEVER: by somebody else. */
void wait_look_at(struct engine *e, struct lock *l, struct instant at);
/* Out of the line, without a word. */
void wait_leave(struct engine *e, struct claim *c);
/* Too few usable stores to ask: those who wait keep their place until there are enough. */
void wait_for_quorum(struct engine *e, struct lock *l);
/* The claim has waited long enough. */
void wait_fired(struct engine *e, struct claim *c);

/* hold.c */
/* The clock of a node jumped ahead: its votes are lowered by that. */
void hold_lower(struct engine *e, unsigned node);
/* A renewal found another value in the place of ours, whose vote still counts. */
void hold_contested(struct engine *e, struct lock *l);
/* HELD, and the lease is as good as over: its loss is told. */
void hold_expire(struct engine *e, struct lock *l);
/* Nobody has asked for what was granted: it goes to the next. */
void hold_lapse(struct engine *e, struct claim *c);
/* CLOSING: nobody believes any longer. */
void hold_closed(struct engine *e, struct lock *l);

static inline unsigned engine_quorum(const struct engine *e)
{
	return quorum_of(e->core->conf.nodes);
}

#endif
