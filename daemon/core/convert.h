/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversions: an owner that holds a lock asks for it in the other mode. Its request is a waiting claim, before all others. See ALGORITHMS.md, Shared locks.
 */
#ifndef CORE_CONVERT_H
#define CORE_CONVERT_H

#include "daemon/core/parts.h"

/* This owner holds the lock in the other mode. If it does not wait for other readers, it waits until then for the round that a token takes. */
void convert_ask(struct engine *e, struct claim *c, struct instant until);
/* The line of a held lock may move: a waiter or a holder has left, or the lease was renewed. Converts the first waiter if it can be, and lets readers in. */
void convert_look(struct engine *e, struct lock *l);
/* A renewal begins: perhaps it asks to have a share alone. */
void convert_begin(struct engine *e, struct round *r);
/* An answer to this renewal was counted. */
void convert_renewed(struct engine *e, struct round *r);
/* This hold is about to end: what would convert it is withdrawn. */
void convert_withdraw(struct engine *e, const struct claim *holder);
/*
 * This hold was lost: what would have converted it waits as any other from now on. In a drain all that its owner waits for is refused, as it no longer holds
 * the name: also what it asked for while the hold was being adopted.
 */
void convert_forfeit(struct engine *e, const struct claim *lost);
/* Its owner asks to share this exclusive hold: as soon as the stores agree, it does. */
bool convert_is_asked(const struct claim *holder);
/* The waiting claim that would make a hold of another owner exclusive; NULL: none. */
const struct claim *convert_rival(const struct lock *l, const struct session *session, struct span owner);

#endif
