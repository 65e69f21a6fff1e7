/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run holds: one or more locks, all or none of them; or a job for CMD. */
#ifndef CLIENT_LOCKS_HELD_H
#define CLIENT_LOCKS_HELD_H

#include "client/cli/io/output.h"
#include "client/cli/run/task.h"
#include "client/cli/run/waiting.h"

#define UNLOCK_MS 1000 /* timeout for each answer at the end. It is short, because the end of the session frees the locks, too */

/* --- a job --- */

/* Takes a job, and waits for it as --wait says. False: w->exit is set. Complains unless no job was due. */
bool taken_job_take(struct waiting *w, struct redlock_job *ret_job) REDLOCK_MUST;
/* Gives a job back. how: "", or " failed=no", which does not count as an attempt. Not repeated, because a second RETRY could make a dead job due. */
int taken_job_retry(struct redlock *c, const char *queue, struct redlock_bytes id, const char *how) REDLOCK_MUST;
/* Whether the answer to the RETRY says that the job has failed for good. If so, writes a text for people. */
bool taken_job_is_over(const struct keeper_task *task, char *out, size_t size);

/* --- locks or a job --- */

/* Lists the names for people, with commas between them. */
void locks_held_shown(const char *const *names, unsigned n, char *out, size_t size);
/* Sends CHECK for each, and sets task->grant. 0, or the outcome for the first that is not held. */
int locks_held_check(struct keeper_task *task) REDLOCK_MUST;
/* Returns the push LOST of one of them, or of the job or its lock; NULL: there is none. Drops the pushes before it. */
const struct redlock_line *locks_held_loss(const struct keeper_task *task);
/* Returns the grant that ends first. */
const struct redlock_grant *locks_held_first(const struct keeper_task *task);
/*
 * Unlocks each lock, and stops at the first that is refused. Returns its outcome; *ret_at is its index. A job is done, or is due again, depending on
 * the attempt. Without --delay the pause after a failed attempt grows: 1 s, then twice as long each time, up to 5 minutes. Sets the timeout of the
 * connection to UNLOCK_MS.
 */
int locks_held_unlock(const struct keeper_task *task, int64_t keep_ms, enum attempt attempt, unsigned *ret_at) REDLOCK_MUST;
/* Sets the variables for CMD: REDLOCK_NAME, REDLOCK_JOB and so on. 0 or a negative errno. */
int locks_held_environment(const struct keeper_task *task);

/* Whether the stores or an administrator took the lock away. If so, the lock protects nothing, even before its deadline. */
bool loss_is_final(const struct redlock_line *push);
/* Whether the last request was refused because the session does not hold the lock. */
bool loss_refused(const struct redlock *c);

#endif
