/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs of sessions, TAKEs, and the questions to the homes of queues. */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include "daemon/core/event/journal.h"
#include "daemon/core/lock/lock.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/session/jobs.h"

/* What the stores report about their queues: rows of a name and figures, and a page of such rows, sorted by name. */

#define QUEUE_FIGURES 4 /* due, leased, dead, next_ms; the last is -1 if it is not known */

/* One queue in the list of a store. */
struct queue_row {
	struct span name;
	int64_t figure[QUEUE_FIGURES];
};

/* LIST queues: each queue has its own home, so the daemon asks each store for the queues that it keeps, piece by piece. */

extern const struct listed listed_queues;
void queue_list_on_outcome(struct request_context *x, struct home_question *q);

/* LIST jobs: the daemon asks the home of the queue for its jobs, piece by piece. */

/* Starts the LIST that is being served. most: rows. */
void job_list_jobs(struct request_context *x, struct session *s, size_t most);
void job_list_on_outcome(struct request_context *x, struct home_question *q);
void surveys_free_all(struct request_context *x);

/*
 * The places of TAKEs that were lost with their connection. After RESUME, a repeated TAKE of the same queue gets the place of the first of them, if it comes in
 * time. Meanwhile others take jobs before such a place: a job that nobody works on must not be kept from them.
 */

/* RESUME: moves the places of `from` to `to`. */
void take_places_take_over(struct session *to, struct session *from);

/* Adds a TAKE to those that wait. One with wait= gets the first place that was kept for it, if any. Others come last. */
void place_enqueue(struct request_context *x, struct take *take);

/* A TAKE that is not answered yet: how it gets a job with its lock, how it ends without one, and what happens when its session ends. */

/* Closes the queue if nobody waits in it any more. If a question is under way, its answer is awaited, and a job that it brings is given back. */
void queue_close_if_unused(struct request_context *x, struct job_queue *queue);

/* Its session may have so much unsent that it gets no job until that is sent. Then takes_sent() continues. */
bool take_is_behind(struct request_context *x, struct take *take);
/*
 * Returns the first waiting TAKE that may have the lock of the job, and marks those before it that may not. NULL: there is none, or it now asks for another
 * lease.
 */
struct take *take_for(struct request_context *x, struct job_queue *queue, const struct job *job);
/* Some waiting TAKE may have its lock, perhaps with another ttl than the home was asked for. */
bool take_may_have(const struct request_context *x, const struct job_queue *queue, const struct job *job);
/* Enough of the job's lease is left to be useful. */
bool job_is_worth_it(const struct request_context *x, const struct job *job);
/* The lease of its job is still long enough. */
bool take_may_win(const struct request_context *x, const struct take *take);
/* It gets its job. claim: the session's claim on the lock of the job; NULL: the job has none. */
void take_won(struct request_context *x, struct take *take, const struct claim *claim);
/* The job goes back to its place, and the TAKE goes on waiting. */
void take_give_back(struct request_context *x, struct take *take, bool wakes);
/* As far as is known, nothing is due. retry_ms: when something may be; -1: not known. */
void take_is_over(struct request_context *x, struct take *take, int64_t retry_ms);
void take_refuse(struct request_context *x, struct take *take, enum error code, const char *text);

struct take *take_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
void take_cancel(struct request_context *x, struct take *take);
/* The session has sent its last line. */
void takes_finish_up(struct request_context *x, struct session *s);
/* The session ends: withdraws its TAKEs, and gives back the jobs that they got. */
void takes_end(struct request_context *x, struct session *s);
/* The session loses its connection: the same, but their places are kept for RESUME. */
void takes_detach(struct request_context *x, struct session *s);
/* The daemon stops, or drains: refuses TAKEs while *left > 0, and subtracts them from it. False: some remain. */
bool takes_refuse(struct request_context *x, struct session *s, int64_t *left);
/* The same for those that the present rules do not allow. */
bool takes_revoke(struct request_context *x, struct session *s, int64_t *left);

void takes_free_all(struct request_context *x);

/*
 * TAKE after RESUME: the answer to an earlier TAKE may have been lost with the connection. Then a job would be kept for a client that does not know of it. So
 * TAKE is answered first with such a job: one from an earlier connection, about which the client has sent nothing since.
 */

/* Answers the TAKE that is being served with such a job, now or later. False: the session has none of that queue. */
bool take_again(struct request_context *x, struct session *s);
/* The home has sent the payload. */
void take_again_on_outcome(struct request_context *x, struct home_question *q);

/*
 * A pass for the TAKEs that wait here: the daemon asks the home of a queue for one job after the other, until nothing more is due that they may take. Waiting
 * TAKEs do not poll: the home notifies the daemon when something is due, and each answer says when the next job will be. See ALGORITHMS.md, Jobs.
 */

/* Asks the home of the queue again, from its first job on. */
void queue_look(struct request_context *x, struct job_queue *queue);
/* Something may be due in this queue. */
void takes_wake(struct request_context *x, struct span queue);
/* The same for all queues for which job_queue_note() was called. */
void takes_look(struct request_context *x);
/* The session's output was sent completely: see take_is_behind(). */
void takes_sent(struct request_context *x, const struct session *s);
void queue_on_outcome(struct request_context *x, struct home_question *q);
void take_fired(struct request_context *x, struct take *take);
/* The lock of its job was refused. The group will be freed. */
void take_refused(struct request_context *x, struct take *take, enum refusal why);

/*
 * DEFER, and RETRY of a job that has failed too often: orders to the home of a queue. An order is acknowledged only when the home has confirmed it. If the
 * answer is missing, the order is sent again. A DEFER has the same nonce in all its tries, so the home executes it once. When the client has been told that the
 * outcome is unknown, the home executes no later try.
 */

/* Sends the order of the request that is being served. words: the arguments after the id. */
void job_order_new(struct request_context *x, struct session *s, struct span queue, struct span id, struct buf *words);
/* Returns until when an order that is sent now is sent again. */
struct instant job_order_until(const struct request_context *x);
void job_order_on_outcome(struct request_context *x, struct home_question *q);
void job_order_fired(struct request_context *x, struct timer *t);
void orders_free_all(struct request_context *x);

/*
 * What happens to a job that a session has. The watchdog renews its lease at the home of its queue. In the end it is lost, done, failed or given back. See
 * ALGORITHMS.md, Jobs.
 */

/* Prepares a question to the home of the queue, for a client of this peer. The caller adds the arguments after the operation, and then calls home_ask. */
struct home_question *job_question(struct request_context *x, struct span queue, struct origin *o, const char *op, void *about);

/*
 * The session has the job from now on, and its client will be told. The lock belongs to the session already. sent: when the vote was asked for. If the session
 * had the job before, that attempt is over.
 */
void job_hold(struct request_context *x, struct job *job, struct session *s, struct instant sent);
/*
 * Asks the home to end the job, again and again until it has answered or the lease is over. The session no longer has the job. p: the request to answer then;
 * NULL: none. If the home does not do it, and no client is there for the answer, the session has lost the job. A repeated request is then answered so.
 */
void job_end(struct request_context *x, struct job *job, enum job_end end, struct pending *p);
/* The same end was asked for before, and no request waits for it. This one will be answered. */
void job_end_again(struct request_context *x, struct job *job, struct pending *p);
/* Serves CHECK with job=. */
void job_check(struct request_context *x, struct session *s);
/* ERR LOST was sent: the loss is forgotten. */
void job_acknowledge(struct request_context *x, struct job *job);

/* The session loses its jobs. Nobody else gets them before their leases are over. */
void jobs_lose(struct request_context *x, struct session *s, enum loss why);

void job_on_outcome(struct request_context *x, struct home_question *q);
void job_fired(struct request_context *x, struct job *job);
/* The votes of this store end earlier by that time. */
void jobs_shorten(struct request_context *x, unsigned node, int64_t sooner_us);

/* The jobs of a session that ends, loses its connection, is resumed, or is of the previous run. */

/* The session ends. sure: its client is gone, or has ended the session. Otherwise its jobs become due when their leases are over. */
void jobs_end(struct request_context *x, struct session *s, bool sure);
/* RESUME: moves the jobs of `from` to `to`. */
void jobs_take_over(struct session *to, struct session *from);
/* Its connection is lost, perhaps with the answers to its TAKEs. */
void jobs_detach(struct session *s);
/* Returns how many of its jobs are being adopted. */
unsigned jobs_open(const struct session *s);
/*
 * Adds rows to the answer to RESUME: one for each job that it has, if there is room. The answer begins at `begin`. Returns how many; *more counts the others.
 */
unsigned jobs_send_rows(struct request_context *x, struct session *s, size_t begin, int64_t *more);
void jobs_send_lost(struct request_context *x, struct session *s); /* reports the losses that its client does not know yet */

/* A record of the previous run: the session had this job. False: the record is not valid. */
bool job_restore(struct request_context *x, struct session *s, const struct journal_record *r);
bool job_restore_lost(struct request_context *x, struct session *s, const struct journal_record *r); /* it had lost it; the same */
void job_restore_known(const struct session *s, const struct journal_record *r); /* its client knew that it had it */
void job_restore_ending(const struct session *s, const struct journal_record *r); /* the home had been asked to end it */
/* JOB_LEFT: the home is asked to end it. */
void job_restore_left(struct request_context *x, const struct journal_record *r);
void job_restore_over(struct request_context *x, struct session *s, const struct journal_record *r);
void jobs_adopt(struct request_context *x, struct session *s); /* call after the last record */

void jobs_free_all(struct request_context *x);

#endif
