/* SPDX-License-Identifier: BSD-2-Clause */
/* A job that a keeper runs CMD for: it is taken, checked, and done or given back, in the place of locks. */
#ifndef CLIENT_TAKEN_JOB_H
#define CLIENT_TAKEN_JOB_H

#include "client/cli/run/task.h"
#include "client/cli/run/waiting.h"

/* Takes a job, and waits for it as --wait says. False: w->exit is set, after a complaint unless nothing was due. */
bool taken_job_take(struct waiting *w, struct redlock_job *ret_job) REDLOCK_MUST;

int taken_job_check(struct keeper_task *task) REDLOCK_MUST; /* sets the only grant */
int taken_job_check_send(const struct keeper_task *task) REDLOCK_MUST;
int taken_job_grant(const struct keeper_task *task, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* The push that the job was lost, or its lock; NULL: neither. Drops the pushes before it. */
const struct redlock_line *taken_job_loss(const struct keeper_task *task);
/* Without --delay a job that has failed is due again after a pause that grows with the attempts: one of 1 s, then twice as long each time, up to 5 minutes. */
int taken_job_end(const struct keeper_task *task, enum attempt attempt) REDLOCK_MUST;
/* Gives a job back. how: "", or " failed=no", which counts as no attempt. It is not said again: that could make a job due that is dead by now. */
int taken_job_retry(struct redlock *c, const char *queue, struct redlock_bytes id, const char *how) REDLOCK_MUST;
/* Whether the answer to that says that the job has failed for good; and a text for a person. */
bool taken_job_is_over(const struct keeper_task *task, char *out, size_t size);
/* REDLOCK_QUEUE, REDLOCK_JOB, REDLOCK_ATTEMPT; and of its lock REDLOCK_NAME, REDLOCK_FENCE. 0 or a negative errno. */
int taken_job_environment(const struct keeper_task *task);

#endif
