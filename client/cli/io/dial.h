/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the connection of a command, and turns outcomes into exit codes.
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
 * The same for a command that waits. With --wait it tries again during that time, because the daemon may be away, and subtracts the time from
 * in->wait_ms. ends: two descriptors for poll(2), or NULL. When one of them is ready, it stops, without a complaint.
 */
struct redlock *dial_waiting(struct invocation *in, struct pollfd *ends) REDLOCK_MUST;

/* Tries for as long as it takes, for a command that was served before: the daemon may be away. Complains once. */
struct redlock *redial(const char *addr) REDLOCK_MUST;
void redial_pause(void); /* the pause between two tries */

/* Sends HELLO with the label. redlock_answer then describes the daemon. Returns the result of redlock_hello. */
int hello(struct redlock *c, const char *label) REDLOCK_MUST;

/* Lists all pages from this one on. A page without rows is the last, even if the daemon announces more. */
int list_all(struct redlock *c, enum redlock_listing what, struct redlock_page *page, void (*row)(void *arg, const struct redlock_line *line),
	     void *arg) REDLOCK_MUST;

/* The end of the message that the connection could not be opened: where to look if nobody listens, else "". */
const char *absence_hint(int outcome);
/* The end of the complaint about an outcome: where to look if the daemon has not answered, else "". */
const char *silence_hint(int outcome);

/* Returns the exit code for the outcome of a request. Complains unless it is 0. */
int exit_of(const struct redlock *c, int outcome);

#endif
