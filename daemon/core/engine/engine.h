/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes each answer and each timer to its file; the first step of a claim, what follows a round, and EXTEND. */
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include "daemon/core/round/engine_data.h"

/*
 * A claim comes to a name: its owner holds the name already, or the claim joins readers, is refused, or waits. This also decides whether the stores are
 * asked.
 */

/*
 * A claim asks for a name. Exactly one notice follows, now or later: GRANTED, REENTERED or REFUSED.
 * claim: session, texts, ttl, delay, renew, patient, asked_at are set; wait_until bounds a patient one.
 */
void lock_request_ask(struct engine *e, struct claim *c, struct span name, struct instant wait_until);

/*
 * The engine moves locks through their states: it asks the stores, counts their votes, renews leases, hands the lock to the first waiter, and notices losses.
 * What is to be sent to sessions becomes notices, in order; there are no callbacks.
 *
 * Its rules: a lease is held only while Q votes vouch for it; a vote counts from before its command was sent; a grant or a key that was put back counts only
 * if its store is joined; a value is dead once a release for it was sent; a renewal of unknown outcome changes nothing, except that one with a shorter TTL
 * lowers the vote when it is sent; a loss is reported before the holder's validity ends, and the key is left alone until it has ended.
 * See ALGORITHMS.md, Five ways through the code.
 */

#define EXTENDS_MOST 2048 /* of a lock at a time: one step answers all of them, whether a renewal has succeeded or the lock is lost */
/* Whether there may be one more. */
bool engine_may_extend(const struct lock *l);
/* Renews the holder's lease now. The outcome answers the pending. */
void engine_extend(struct engine *e, struct claim *c, struct pending *p);

bool engine_answer(struct engine *e, const struct answer *a); /* false: no such call is open */
void engine_node_up(struct engine *e, unsigned node, struct span address);
void engine_node_down(struct engine *e, unsigned node, enum defect defect, struct span reason, struct span address);
void engine_fired(struct engine *e, struct timer *t); /* TIMER_CONTENDER … TIMER_BACK */
/* Begins what the events of this step made possible. Called at the end of each step. */
void engine_after_step(struct engine *e);
void engine_stop(struct engine *e);

#endif
