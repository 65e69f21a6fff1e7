/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the connection of a command, and judges the answer to its request.
 */
#ifndef CLIENT_DIAL_H
#define CLIENT_DIAL_H

#include "client/lib/redlock.h"

struct invocation;
struct pollfd;

#define ANSWER_TIMEOUT_MS 5000

/* Returns NULL after a complaint. addr may be NULL: see redlock_address. */
struct redlock *dial(const char *addr) REDLOCK_MUST;

/*
 * The same for a command that waits: with --wait it tries again as long as that says, since the daemon may be away, and takes that time from it. ends: two
 * descriptors as for poll(2), or NULL; when something comes at one of them, the tries end without a complaint.
 */
struct redlock *dial_waiting(struct invocation *in, struct pollfd *ends) REDLOCK_MUST;

/* The same for as long as it takes, for a command that has been served before: the daemon may be away. Complains once. */
struct redlock *redial(const char *addr) REDLOCK_MUST;
void redial_pause(void); /* between two tries */

/* Tells the daemon who asks, and hears what the daemon is: redlock_answer has it. Returns what redlock_hello returns. */
int hello(struct redlock *c, const char *label) REDLOCK_MUST;

/* All pages from this one on. A page without rows is the last, even if the daemon announces more. */
int list_all(struct redlock *c, enum redlock_listing what, struct redlock_page *page, void (*row)(void *arg, const struct redlock_line *line),
	     void *arg) REDLOCK_MUST;

/* What follows the message of a connection that could not be opened: where to look when nobody listens, else "". */
const char *absence_hint(int outcome);
/* What follows a complaint of the outcome of a request: where to look when the daemon has not answered, else "". */
const char *silence_hint(int outcome);

/* The exit code that the outcome of a request comes to, after a complaint unless it is 0. */
int exit_of(const struct redlock *c, int outcome);

#endif
