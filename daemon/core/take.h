/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TAKE: a job of a queue that is due is leased to the session, and its lock is granted with it, if it has one. The TAKEs of a queue ask its home one after the
 * other. Those that wait do not poll: the home tells the daemon when something is due, and each answer says when the next job will be. See ALGORITHMS.md, Jobs.
 */
#ifndef CORE_TAKE_H
#define CORE_TAKE_H

#include "daemon/core/jobs.h"
#include "daemon/core/notices.h"

void serve_TAKE(struct commander *x, struct session *s);

/* Something may be due in this queue. */
void takes_wake(struct commander *x, struct span queue);
/* The same for all of which job_queue_note() was told. */
void takes_look(struct commander *x);
void take_told(struct commander *x, struct home_question *q);
void takes_fired(struct commander *x, struct job_queue *queue);
void take_fired(struct commander *x, struct take *take);

/* The lease of its job is still long enough. */
bool take_may_win(const struct commander *x, const struct take *take);
/* What became of the lock of its job: the session of the take has the claim; or it was refused. The group is about to be freed. */
void take_won(struct commander *x, struct take *take, const struct claim *claim);
void take_refused(struct commander *x, struct take *take, enum refusal why);

struct take *take_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
void take_cancel(struct commander *x, struct take *take);
/* The session has sent its last line. */
void takes_finish_up(struct commander *x, struct session *s);
bool takes_wait(const struct session *s, bool patient);
/* The session ends or loses its connection: its TAKEs are withdrawn, and what they were given goes back. */
void takes_end(struct commander *x, struct session *s);
/* The daemon stops. */
void takes_refuse(struct commander *x, struct session *s);

void takes_free_all(struct commander *x);

#endif
