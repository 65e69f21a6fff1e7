/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the connection of a command, and judges the answer to its request.
 */
#ifndef CLIENT_DIAL_H
#define CLIENT_DIAL_H

#include "client/redlock.h"

#define ANSWER_TIMEOUT_MS 5000

/* Returns NULL after a complaint. addr may be NULL: see redlock_address. */
struct redlock *dial(const char *addr) REDLOCK_MUST;

/* The same, and tries again, for the last time at that moment (redlock_now_us), since the daemon may be away. *ret_away_us: for how long it was. */
struct redlock *dial_until(const char *addr, int64_t until_us, int64_t *ret_away_us) REDLOCK_MUST;

/* The same for as long as it takes, for a command that has been served before: the daemon may be away. Complains once. */
struct redlock *redial(const char *addr) REDLOCK_MUST;
void redial_pause(void); /* between two tries */

/* What follows the message of a connection that could not be opened: where to look when nobody listens, else "". */
const char *absence_hint(int outcome);
/* What follows a complaint of the outcome of a request: where to look when the daemon has not answered, else "". */
const char *silence_hint(int outcome);

/* The exit code that the outcome of a request comes to, after a complaint unless it is 0. */
int exit_of(const struct redlock *c, int outcome);

#endif
