/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks of which RESUME does not tell whether the session holds them: the daemon was started anew and the stores have not confirmed them, or
 * there were too many to be told at once. CHECK of each tells what is lost. A LOCK or an UNLOCK in flight waits until its lock is decided:
 * repeated before, it would count twice, or not at all.
 */
#ifndef CLIENT_UNDECIDED_H
#define CLIENT_UNDECIDED_H

#include "client/pending.h"

/* RESUME was answered. True: locks are undecided. */
bool undecided_resumed(struct holds *holds, const struct reply_line *answer);
/* The UNLOCK in flight was given up before, and nobody has said yet whether it counted. True: its lock is undecided from now on. */
bool undecided_unlock(struct holds *holds, const struct pending *p);
/* The name that CHECK is to be sent for, or NULL. */
const char *undecided_next(const struct holds *holds, const struct pending *p);
/* CHECK of name was answered. False: the request in flight still waits for this lock, and CHECK is to be sent again later. */
bool undecided_checked(struct holds *holds, struct pending *p, const char *name, const struct reply_line *answer, int64_t asked_us);

#endif
