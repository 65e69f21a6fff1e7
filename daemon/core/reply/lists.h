/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The LISTs that take more than one step. A page may be as large as an answer, so a few of them have one, and the others wait for it: peers take turns, and
 * none has more than half of the pages. A long table is looked through, and told, in slices, one a millisecond, each bounded in what it does, so that others
 * wait for one slice at most: here peers take turns as well, and so do the sessions of a peer. The LISTs of a session are answered one after the other.
 */
#ifndef CORE_LISTS_H
#define CORE_LISTS_H

#include "daemon/core/reply/listing.h"

void lists_init(struct request_context *x);
/* A new one, of a table of so many entries. A short one is answered at once. */
void lists_add(struct request_context *x, struct listing *l, size_t entries);
/* TIMER_LISTS: the next slice. */
void lists_go_on(struct request_context *x);
/* One that ASKS has all that the stores have told: it is told. */
void lists_found(struct request_context *x, struct listing *l);
/* It is answered, otherwise than with rows. */
void lists_over(struct request_context *x, struct listing *l);
/* The session leaves its connection: its LISTs are dropped without a word. */
void lists_drop(struct request_context *x, struct session *s);
/* The daemon stops: refuses all LISTs under way. True: there were some. */
bool lists_stop(struct request_context *x);

#endif
