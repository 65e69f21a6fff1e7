/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Surplus grants. A call that was given up while the connection was away may have been done all the same. If a LOCK counted, one
 * UNLOCK gives the grant back as soon as RESUME or an answer shows it. If an UNLOCK counted, the next one is answered without the
 * daemon (repeat.h). A grant that a call returned is never given back.
 */
#ifndef CLIENT_SURPLUS_H
#define CLIENT_SURPLUS_H

#include "client/pending.h"

#define SURPLUS_BYTES (4 * NAME_MAX_BYTES + 64)

/* The caller gives up the LOCK or UNLOCK in flight, which may have been done. */
void surplus_given_up(struct holds *holds, const struct pending *p);
/*
 * A LOCK was granted, and its caller is told that there is no grant. up: the connection is there, so the count is known. True:
 * the grant is to be given back.
 */
bool surplus_refused(struct holds *holds, const char *name, bool up);
/*
 * A lock that is held more often than the caller believes, or may be; NULL: none. The lock that the LOCK in flight asks for is
 * left out.
 */
const struct hold *surplus_next(struct holds *holds, const struct pending *p);
/* Writes the UNLOCK that gives one grant of it back; returns its length. */
size_t surplus_line(const struct hold *h, char out[SURPLUS_BYTES]);
/* That UNLOCK was answered. The hold is forgotten only now: an UNLOCK whose connection broke is sent again over the next. */
void surplus_answered(struct holds *holds, const char *name, const struct reply_line *answer);

#endif
