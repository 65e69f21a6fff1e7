/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks of one run: the keeper holds all of them for CMD, or none. Most runs have one. */
#ifndef CLIENT_LOCKS_HELD_H
#define CLIENT_LOCKS_HELD_H

#include "client/cli/io/output.h"
#include "client/cli/run/task.h"

#define UNLOCK_MS 1000 /* for each answer at the end: it is short, for the end of the session frees the locks, too */

/* The names for a person, with commas between them. */
void locks_held_shown(const char *const *names, unsigned n, char *out, size_t size);
/* Asks CHECK for each, and sets task->grant. 0, or the outcome for the first that is not held. */
int locks_held_check(struct keeper_task *task) REDLOCK_MUST;
/* The push LOST of one of them, or NULL. Drops the pushes before it. */
const struct redlock_line *locks_held_loss(const struct keeper_task *task);
/* The grant that ends first. */
const struct redlock_grant *locks_held_first(const struct keeper_task *task);
/* Unlocks each, up to the first that is refused, which is told. A job ends as the attempt did. Sets the timeout of the connection to UNLOCK_MS. */
int locks_held_unlock(const struct keeper_task *task, int64_t keep_ms, enum attempt attempt, unsigned *ret_at) REDLOCK_MUST;
/* Sets the variables in which CMD finds them. 0 or a negative errno. */
int locks_held_environment(const struct keeper_task *task);

/* The stores or an administrator took the lock away: nothing protects it until the old deadline. */
bool loss_is_final(const struct redlock_line *push);
/* Whether the last answer refused because the session does not hold the lock. */
bool loss_refused(const struct redlock *c);

#endif
