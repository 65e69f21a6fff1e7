/* SPDX-License-Identifier: BSD-2-Clause */
/* A job that a keeper runs CMD for: it is taken, checked, and done or given back, in the place of locks. */
#ifndef CLIENT_WORKING_H
#define CLIENT_WORKING_H

#include "client/cli/task.h"
#include "client/cli/waiting.h"

/* Takes a job, and waits for it as --wait says. False: w->exit is set, after a complaint unless nothing was due. *ret_job is to be released. */
bool working_take(struct waiting *w, struct redlock_job *ret_job) REDLOCK_MUST;
void working_release(struct redlock_job *job);

int working_check(struct keeper_task *task) REDLOCK_MUST; /* sets the only grant */
int working_check_send(const struct keeper_task *task) REDLOCK_MUST;
int working_grant(const struct keeper_task *task, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* The push that the job was lost, or its lock; NULL: neither. Drops the pushes before it. */
const struct redlock_line *working_loss(const struct keeper_task *task);
/* Without --delay a job that has failed is due again after a pause that grows with the attempts: one of 1 s, then twice as long each time, up to 5 minutes. */
int working_end(const struct keeper_task *task, enum attempt attempt) REDLOCK_MUST;
/* Whether the answer to that says that the job has failed for good; and a text for a person. */
bool working_is_over(const struct keeper_task *task, char *out, size_t size);
/* REDLOCK_QUEUE, REDLOCK_JOB, REDLOCK_ATTEMPT; and of its lock REDLOCK_NAME, REDLOCK_FENCE. 0 or a negative errno. */
int working_environment(const struct keeper_task *task);

#endif
