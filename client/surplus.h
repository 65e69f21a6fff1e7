/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Surplus grants: calls that were given up while the connection was away. A LOCK of them may have counted: then one UNLOCK is sent for it, when
 * RESUME or an answer shows it. An UNLOCK may have counted: then the next one is answered here (repeat.h). A lock that a call was told of is
 * never touched.
 */
#ifndef CLIENT_SURPLUS_H
#define CLIENT_SURPLUS_H

#include "client/pending.h"

#define SURPLUS_BYTES (4 * NAME_MAX_BYTES + 64)

/* The LOCK or UNLOCK in flight is given up, and may have been done. */
void surplus_given_up(struct holds *holds, const struct pending *p);
/* A LOCK was granted, and its caller hears that it was not. up: the connection is there, so that what is held is known. True: it is to be given back. */
bool surplus_refused(struct holds *holds, const char *name, bool up);
/* A lock that is held more often than its caller believes, or nobody can tell; NULL: none. What the LOCK in flight asks for is not given back. */
const struct hold *surplus_next(struct holds *holds, const struct pending *p);
/* The UNLOCK that gives one grant of it back. */
size_t surplus_line(const struct hold *h, char out[SURPLUS_BYTES]);
/* That UNLOCK was answered. The hold is forgotten only now: an UNLOCK whose connection broke is sent again over the next. */
void surplus_answered(struct holds *holds, const char *name, const struct reply_line *answer);

#endif
