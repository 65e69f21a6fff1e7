/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pass: the home of a queue is asked for one job after the other, for the TAKEs that wait here, until nothing more is due that may be taken. Those that wait
 * do not poll: the home tells the daemon when something is due, and each answer says when the next job will be. See ALGORITHMS.md, Jobs.
 */
#ifndef CORE_QUEUE_PASS_H
#define CORE_QUEUE_PASS_H

#include "daemon/core/lock/notices.h"
#include "daemon/core/session/jobs.h"

/* Looks at the home of the queue from the beginning. */
void queue_look(struct request_context *x, struct job_queue *queue);
/* Something may be due in this queue. */
void takes_wake(struct request_context *x, struct span queue);
/* The same for all of which job_queue_note() was told. */
void takes_look(struct request_context *x);
/* The session has been sent all: see take_is_behind(). */
void takes_sent(struct request_context *x, const struct session *s);
void queue_told(struct request_context *x, struct home_question *q);
void take_fired(struct request_context *x, struct take *take);
/* The lock of its job was refused. The group is about to be freed. */
void take_refused(struct request_context *x, struct take *take, enum refusal why);

#endif
