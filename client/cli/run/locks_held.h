/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run holds: locks, all of them or none, most runs one; or a job that CMD is run for. */
#ifndef CLIENT_LOCKS_HELD_H
#define CLIENT_LOCKS_HELD_H

#include "client/cli/io/output.h"
#include "client/cli/run/task.h"
#include "client/cli/run/waiting.h"

#define UNLOCK_MS 1000 /* for each answer at the end: it is short, for the end of the session frees the locks, too */

/* --- a job --- */

/* Takes a job, and waits for it as --wait says. False: w->exit is set, after a complaint unless nothing was due. */
bool taken_job_take(struct waiting *w, struct redlock_job *ret_job) REDLOCK_MUST;
/* Gives a job back. how: "", or " failed=no", which counts as no attempt. It is not said again: that could make a job due that is dead by now. */
int taken_job_retry(struct redlock *c, const char *queue, struct redlock_bytes id, const char *how) REDLOCK_MUST;
/* Whether the answer to that says that the job has failed for good; and a text for a person. */
bool taken_job_is_over(const struct keeper_task *task, char *out, size_t size);

/* --- either --- */

/* The names for a person, with commas between them. */
void locks_held_shown(const char *const *names, unsigned n, char *out, size_t size);
/* Asks CHECK for each, and sets task->grant. 0, or the outcome for the first that is not held. */
int locks_held_check(struct keeper_task *task) REDLOCK_MUST;
/* The push LOST of one of them, or of the job or its lock; or NULL. Drops the pushes before it. */
const struct redlock_line *locks_held_loss(const struct keeper_task *task);
/* The grant that ends first. */
const struct redlock_grant *locks_held_first(const struct keeper_task *task);
/*
 * Unlocks each, up to the first that is refused, which is told. A job ends as the attempt did: without --delay one that has failed is due again after a pause
 * that grows with the attempts: 1 s, then twice as long each time, up to 5 minutes. The timeout of the connection becomes UNLOCK_MS.
 */
int locks_held_unlock(const struct keeper_task *task, int64_t keep_ms, enum attempt attempt, unsigned *ret_at) REDLOCK_MUST;
/* Sets the variables in which CMD finds them: REDLOCK_NAME, REDLOCK_JOB and so on. 0 or a negative errno. */
int locks_held_environment(const struct keeper_task *task);

/* The stores or an administrator took the lock away: nothing protects it until the old deadline. */
bool loss_is_final(const struct redlock_line *push);
/* Whether the last answer refused because the session does not hold the lock. */
bool loss_refused(const struct redlock *c);

#endif
