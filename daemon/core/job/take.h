/* SPDX-License-Identifier: BSD-2-Clause */
/* A TAKE that is not answered yet: how it gets a job with its lock, how it ends without, and what becomes of it when its session ends. */
#ifndef CORE_TAKE_H
#define CORE_TAKE_H

#include "daemon/core/session/jobs.h"

struct job_queue *queue_new(struct request_context *x, struct span name);
/* Nobody waits here any more. A question under way is waited for: what it brings is given back. */
void queue_close_if_unused(struct request_context *x, struct job_queue *queue);

/* Its session may have so much unsent that it gets no job before that is sent: takes_sent() goes on. */
bool take_is_behind(struct request_context *x, struct take *take);
/* The first that waits and may have the lock of the job, if that still asks for such a lease. NULL: nobody. Those before it are denied the job. */
struct take *take_for(struct request_context *x, struct job_queue *queue, const struct job *job);
/* Some TAKE that waits may have its lock, be it for another ttl than the home was asked for. */
bool take_may_have(const struct request_context *x, const struct job_queue *queue, const struct job *job);
/* A job with so much of its lease left is worth having. */
bool job_is_worth_it(const struct request_context *x, const struct job *job);
/* The lease of its job is still long enough. */
bool take_may_win(const struct request_context *x, const struct take *take);
/* OK, of a job that the session has: see take_won(). */
void reply_taken(struct request_context *x, struct session *s, struct span tag, struct job *job, const struct claim *claim, struct span payload);
/* It gets its job. claim: the session has the lock of the job; NULL: that has none. */
void take_won(struct request_context *x, struct take *take, const struct claim *claim);
/* The job goes back to its place, and the TAKE waits on. */
void take_give_back(struct request_context *x, struct take *take, bool wakes);
/* Nothing is due, as far as is known: in so many ms something may be; -1: not known. */
void take_is_over(struct request_context *x, struct take *take, int64_t retry_ms);
void take_refuse(struct request_context *x, struct take *take, enum error code, const char *text);

struct take *take_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
void take_cancel(struct request_context *x, struct take *take);
/* The session has sent its last line. */
void takes_finish_up(struct request_context *x, struct session *s);
bool takes_wait(const struct session *s, bool patient);
/* The session ends: its TAKEs are withdrawn, and what they were given goes back. */
void takes_end(struct request_context *x, struct session *s);
/* It loses its connection: the same, but its places are kept for RESUME. */
void takes_detach(struct request_context *x, struct session *s);
/* The daemon stops, or drains. So many are refused as `left` says, and counted down there. False: some are left. */
bool takes_refuse(struct request_context *x, struct session *s, int64_t *left);
/* Those that the rules as they are now do not allow; likewise. */
bool takes_revoke(struct request_context *x, struct session *s, int64_t *left);

void takes_free_all(struct request_context *x);

#endif
