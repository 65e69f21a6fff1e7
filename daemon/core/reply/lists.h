/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The LISTs that take more than one step. A page may be as large as an answer, so only a few LISTs have one at a time. Peers take turns for pages, and none has
 * more than half of them.
 *
 * A long table is walked, and its rows are sent, in slices of bounded work, one a millisecond. So others wait for one slice at most. For slices peers take
 * turns as well, and so do the sessions of a peer. The LISTs of a session are answered one after the other.
 */
#ifndef CORE_LISTS_H
#define CORE_LISTS_H

#include "daemon/core/reply/listing.h"

void lists_init(struct request_context *x);
/* Adds a new LIST of a table with that many entries. A short one is answered at once. */
void lists_add(struct request_context *x, struct listing *l, size_t entries);
/* TIMER_LISTS: runs the next slice. */
void lists_go_on(struct request_context *x);
/* A listing that ASKS has everything from the stores: its rows are sent. */
void lists_found(struct request_context *x, struct listing *l);
/* It was answered, but not with rows. */
void lists_over(struct request_context *x, struct listing *l);
/* The session leaves its connection: drops its LISTs without an answer. */
void lists_drop(struct request_context *x, struct session *s);
/* The daemon stops: refuses all LISTs under way. True: there were some. */
bool lists_stop(struct request_context *x);

#endif
