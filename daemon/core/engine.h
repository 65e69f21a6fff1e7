/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine moves locks through their states: it asks the stores, counts their votes, keeps leases by watchdog, hands the lock to the first in
 * line, and notices losses. What sessions must be told comes out as notices, in order; nothing calls back.
 *
 * Rules that it obeys: a lease is held only while Q votes say so; a vote counts from before its command was sent and only of a joined
 * node; a value is dead once a release for it was sent; a renewal of unknown outcome changes nothing, except that one with a shorter TTL
 * lowers the vote when it is sent; a loss is told before the holder's validity ends, and the key is left alone until it has.
 * See ALGORITHMS.md, Four ways through the code.
 */
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include "daemon/core/notices.h"
#include "daemon/core/op.h"

struct engine {
	struct core *core;
	struct members members;
	struct lock_table table;
	struct op_table ops;
	struct locks starved;   /* NO_QUORUM */
	struct locks risks;     /* HELD, and RISK was told */
	struct locks adopting;  /* ADOPTING */
	struct admission admission;
	struct timer admission_timer;
	struct instant retry_next; /* no release or withdrawal is repeated before: see debt_retry_at */
	struct op_list debts;   /* releases that some node has not confirmed */
	uint64_t tickets;
	int64_t fence_seen;     /* the largest in any reply that may be believed */
	struct instant modest_until; /* a proposal was within the limit of one store and beyond that of another: until then there are none */
	struct instant narrow_until; /* a store's fence is as far ahead of its clock as may be: single tokens only */
	bool draining;
	struct notices notices;
	uint64_t search;        /* number of the search for a deadlock under way */
	struct rng *rng;
};

void engine_init(struct engine *e, struct core *core);
void engine_release(struct engine *e);

/*
 * A claim asks for a name. Notices follow, now or later: GRANTED, REENTERED or REFUSED, exactly one.
 * claim: session, texts, ttl, delay, renew, patient, asked_at are set; wait_until bounds a patient one.
 */
void engine_lock(struct engine *e, struct claim *c, struct span name, struct instant wait_until);
/* The holder counts down to 0 (the caller has done the counting above that): frees the lock. keep_us > 0: the key stays that long. pending: answer
 * it when a quorum has confirmed; else the release is not waited for. The claim is freed. */
void hold_unlock(struct engine *e, struct claim *c, int64_t keep_us, struct pending *p);
/* A waiting claim waits until then instead. */
void wait_set_end(struct engine *e, struct claim *c, struct instant until);
/* Renew the holder's lease now; answers the pending. */
void engine_extend(struct engine *e, struct claim *c, struct pending *p);
/* Asks the stores who has the name of the pending, and answers it. */
void look_begin(struct engine *e, struct pending *p);
/* A waiting claim whose session has said its last word: a round under way decides, else one that would wait is withdrawn. */
void wait_finish_up(struct engine *e, struct claim *c);
/* A waiting claim is withdrawn: NOTICE_REFUSED. */
void wait_withdraw(struct engine *e, struct claim *c, enum refusal why);
/* The session of this claim is no more. It may act on the lock until then: PAST: certainly does not; NEVER: until D at the latest. The claim is
 * freed; no notice. */
void hold_abandon(struct engine *e, struct claim *c, struct instant until);
/* The holder is to be told that it lost the lock, for a reason of the outer layers. */
void hold_lose(struct engine *e, struct lock *l, enum loss why);
/* What was lost in the former life is remembered. The claim names its session and owner. */
void hold_recall_loss(struct engine *e, struct claim *c, struct span name, enum loss why);
/* The holder of a held lock may believe until then, if it is told nothing more and nothing is renewed. */
struct instant hold_belief(const struct engine *e, const struct lock *l);
/* A loss was acknowledged: forgets and frees the claim. */
void hold_forget(struct engine *e, struct claim *c);

/* Published by a store: may be lost, repeated, late. */
void acquire_woken(struct engine *e, struct span name, unsigned node);
void grant_wanted(struct engine *e, struct span name);
bool engine_answer(struct engine *e, const struct answer *a); /* false: no such call is open */
void engine_node_up(struct engine *e, unsigned node);
void engine_node_down(struct engine *e, unsigned node, struct span reason);
void engine_fired(struct engine *e, struct timer *t); /* TIMER_LOCK, TIMER_CLAIM, TIMER_OP, TIMER_MEMBER, TIMER_ADMISSION */
/* What became possible by the events of this step: call at its end. */
void engine_settle(struct engine *e);
void engine_stop(struct engine *e);
/* When it stops: nobody waits for the stores any more, so every UNLOCK sync=yes is answered. Whether there was one. */
bool debts_answer_syncs(struct engine *e);

#endif
