/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Undecided locks: RESUME does not tell whether the session holds them. The daemon restarted and the stores have not confirmed
 * them, or there were too many locks to tell at once. CHECK of each tells what is lost. A LOCK or UNLOCK in flight waits until
 * its lock is decided: if it were repeated before, it would count twice, or not at all.
 */
#ifndef CLIENT_UNDECIDED_H
#define CLIENT_UNDECIDED_H

#include "client/pending.h"

/* RESUME was answered. True: locks are undecided. */
bool undecided_resumed(struct holds *holds, const struct reply_line *answer);
/*
 * An UNLOCK is about to be sent. If one of the same lock was given up before, nobody knows whether that one counted: then the
 * lock is undecided from now on. True: it is.
 */
bool undecided_unlock(struct holds *holds, const struct pending *p);
/* The lock that CHECK is to be sent for next; NULL: none is undecided. */
const char *undecided_next(const struct holds *holds, const struct pending *p);
/* CHECK of name was answered. False: the request in flight still waits for this lock, so CHECK is to be sent again later. */
bool undecided_checked(struct holds *holds, struct pending *p, const char *name, const struct reply_line *answer,
		       int64_t asked_us);

#endif
