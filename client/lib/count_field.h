/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that take and free locks say by count= how often the session is to hold them afterwards. So each can be sent again over the next connection,
 * whatever became of the first, and a call that was given up is undone, or done, by saying what its caller knows of. For sessions with grace only.
 */
#ifndef CLIENT_COUNT_FIELD_H
#define CLIENT_COUNT_FIELD_H

#include "client/lib/pending.h"

#define SETTLE_BYTES (4 * NAME_MAX_BYTES + 96)

/* The line of the request in flight as it is to be sent now, with its count, which is noted. */
struct span count_field_line(const struct holds *holds, struct pending *p);
/* It was refused for its count, since a lock was lost before it arrived: it is sent again with the count of now. */
bool count_field_is_outdated(const struct holds *holds, const struct pending *p, const struct reply_line *answer);

/* The caller gives up the request in flight, which may have been done. */
void count_field_give_up(struct holds *holds, const struct pending *p);
/* A LOCK was granted, and its caller is told that there is no grant. False: that lock is not held. */
bool count_field_refuse(struct holds *holds, const char *name);
/* RESUME was answered. A request that cannot say its count is sent again once its locks are settled. */
void count_field_resume(struct holds *holds, const struct pending *p);

/* A lock that the session may hold more often than its caller knows of; NULL: none. A request in flight that says its count settles its locks itself. */
const struct hold *count_field_unsettled(struct holds *holds, const struct pending *p);
/* Writes the UNLOCK that settles it. Returns its length. */
size_t count_field_settle(const struct hold *h, char out[SETTLE_BYTES]);
/* That UNLOCK was answered. */
void count_field_settled(struct holds *holds, const struct pending *p, const char *name);

#endif
