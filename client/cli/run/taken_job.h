/* SPDX-License-Identifier: BSD-2-Clause */
/* A job that a keeper runs CMD for: it is taken, checked, and done or given back, in the place of locks. */
#ifndef CLIENT_TAKEN_JOB_H
#define CLIENT_TAKEN_JOB_H

#include "client/cli/run/task.h"
#include "client/cli/run/waiting.h"

/* Takes a job, and waits for it as --wait says. False: w->exit is set, after a complaint unless nothing was due. */
bool taken_job_take(struct waiting *w, struct redlock_job *ret_job) REDLOCK_MUST;

/* Whether a push LOST says that of the job, or of its lock. */
bool taken_job_is_lost(const struct keeper_task *task, const struct redlock_line *push);
/* Without --delay a job that has failed is due again after a pause that grows with the attempts: one of 1 s, then twice as long each time, up to 5 minutes. */
int taken_job_end(const struct keeper_task *task, enum attempt attempt) REDLOCK_MUST;
/* Gives a job back. how: "", or " failed=no", which counts as no attempt. It is not said again: that could make a job due that is dead by now. */
int taken_job_retry(struct redlock *c, const char *queue, struct redlock_bytes id, const char *how) REDLOCK_MUST;
/* Whether the answer to that says that the job has failed for good; and a text for a person. */
bool taken_job_is_over(const struct keeper_task *task, char *out, size_t size);
/* REDLOCK_QUEUE, REDLOCK_JOB, REDLOCK_ATTEMPT; and of its lock REDLOCK_NAME, REDLOCK_FENCE. 0 or a negative errno. */
int taken_job_environment(const struct keeper_task *task);

#endif
