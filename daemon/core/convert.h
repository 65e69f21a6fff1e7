/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An owner that holds a lock alone asks to share it, and who waits behind a held lock. Its request waits in its place with the others, until the stores have
 * given a token. See ALGORITHMS.md, Shared locks.
 */
#ifndef CORE_CONVERT_H
#define CORE_CONVERT_H

#include "daemon/core/parts.h"

/* This owner holds the lock alone, and asks to share it: it waits until then for the round that a token takes. */
void convert_ask(struct engine *e, struct claim *c, struct instant until);
/* The line of a held lock may move: a waiter or a holder has left, or the lease was renewed. Asks for the token of a conversion, and lets readers in. */
void convert_look(struct engine *e, struct lock *l);
/* An answer to this renewal was counted. */
void convert_renewed(struct engine *e, struct round *r);
/* The hold of this lock is about to end: what would convert it is withdrawn. */
void convert_withdraw(struct engine *e, struct lock *l);
/* The hold was lost, or goes on to another: what would have converted it waits as any other from now on. */
void convert_forfeit(struct lock *l);
/* The owner of this lock asks to share it: as soon as the stores agree, it does. */
bool convert_is_asked(const struct lock *l);

#endif
