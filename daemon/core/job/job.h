/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs of sessions, TAKEs, and the questions to the homes of queues. */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include "daemon/core/event/journal.h"
#include "daemon/core/lock/lock.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/page.h"
#include "daemon/core/session/jobs.h"

/* What the stores tell of their queues: rows with a name and figures, and a page of such rows, in the order of the names. It knows no session and no call. */

#define QUEUE_FIGURES 4 /* due, leased, dead, next_ms; the last -1: not known */

/* A row of the list of queues of a store. */
struct queue_row {
	struct span name;
	int64_t figure[QUEUE_FIGURES];
};

/* LIST queues: queues have homes of their own, so each store is asked for those that it keeps, piece by piece. */

extern const struct listed listed_queues;
void queue_list_told(struct request_context *x, struct home_question *q);

/* LIST jobs: what the home of the queue has, asked piece by piece. */

/* Of the LIST that is being served. most: rows. */
void job_list_jobs(struct request_context *x, struct session *s, size_t most);
void job_list_told(struct request_context *x, struct home_question *q);
void surveys_free_all(struct request_context *x);

/*
 * The places of TAKEs that went with their connection: after RESUME a TAKE of the same queue that is repeated in time has the place of the first that went.
 * Meanwhile the turn passes by such a place, since a job that nobody does must not be kept from the others.
 */

/* RESUME: `to` has the places of `from`. */
void take_places_take_over(struct session *to, struct session *from);

/* Puts a TAKE among those that wait: one with wait= has the first place that was kept for it, if any; others stand last. */
void place_stand(struct request_context *x, struct take *take);

/* A TAKE that is not answered yet: how it gets a job with its lock, how it ends without, and what becomes of it when its session ends. */

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

/*
 * TAKE after RESUME: the answer to an earlier TAKE may have been lost with the connection, and its job would be kept for a client that does not know of it. So
 * TAKE answers first with such a job: one that was given over an earlier connection, and about which the client has said nothing since.
 */

/* The TAKE that is being served, of this session: answers it with such a job, now or later. False: the session has none of that queue. */
bool take_again(struct request_context *x, struct session *s);
/* The home has said what the payload is. */
void take_again_told(struct request_context *x, struct home_question *q);

/*
 * A pass: the home of a queue is asked for one job after the other, for the TAKEs that wait here, until nothing more is due that may be taken. Those that wait
 * do not poll: the home tells the daemon when something is due, and each answer says when the next job will be. See ALGORITHMS.md, Jobs.
 */

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

/*
 * DEFER, and RETRY of a job that has failed too often: orders to the home of a queue. An order is acknowledged only once the home has said that it was carried
 * out. If an answer stays out it is given again. A DEFER has a nonce, the same in all its tries, so the home carries it out once. It carries out no try after
 * the client was told that the outcome is not known.
 */

/* The order of the request that is being served. words: the arguments behind the id. */
void job_order_new(struct request_context *x, struct session *s, struct span queue, struct span id, struct buf *words);
/* Until when an order that is given now is given again. */
struct instant job_order_until(const struct request_context *x);
void job_order_told(struct request_context *x, struct home_question *q);
void job_order_fired(struct request_context *x, struct timer *t);
void orders_free_all(struct request_context *x);

/*
 * What becomes of a job that a session has: the watchdog renews its lease at the home of its queue; it is lost, done, failed or given back.
 * See ALGORITHMS.md, Jobs.
 */

/* Asks the home of the queue, for a client of this peer. The maker puts the arguments behind the operation, and then asks by home_ask. */
struct home_question *job_question(struct request_context *x, struct span queue, struct origin *o, const char *op, void *about);

/*
 * The session has it from now on: its client is about to be told. sent: when its vote was asked for. Its lock is the session's already. If the session had the
 * job before, that attempt is over.
 */
void job_hold(struct request_context *x, struct job *job, struct session *s, struct instant sent);
/*
 * The home is told what becomes of the job, until it has answered or the lease is over. The session no longer has it. p: answered then; NULL: nobody is. If it
 * is not carried out, and no client is there to be answered so, the session has lost the job: repeating the request says so.
 */
void job_end(struct request_context *x, struct job *job, enum job_end end, struct pending *p);
/* The same end was asked for before, and no request waits for it: this one is answered. */
void job_end_again(struct request_context *x, struct job *job, struct pending *p);
/* CHECK with job=. */
void job_check(struct request_context *x, struct session *s);
/* ERR LOST was answered: the loss is forgotten. */
void job_acknowledge(struct request_context *x, struct job *job);

/* The session loses the jobs that it has. Nobody else gets them before their leases are over. */
void jobs_lose(struct request_context *x, struct session *s, enum loss why);

void job_told(struct request_context *x, struct home_question *q);
void job_fired(struct request_context *x, struct job *job);
/* The votes of this store end that much sooner. */
void jobs_lower(struct request_context *x, unsigned node, int64_t sooner_us);

/* What becomes of the jobs of a session when it ends, loses its connection, is resumed, or was one of the previous run. */

/* The session ends. sure: its client is gone, or said so; else its jobs are due again when their leases are over. */
void jobs_end(struct request_context *x, struct session *s, bool sure);
/* RESUME: `to` has what `from` had. */
void jobs_take_over(struct session *to, struct session *from);
/* Its connection is lost: the answers to its TAKEs may be, too. */
void jobs_detach(struct session *s);
/* How many of its jobs are being adopted. */
unsigned jobs_open(const struct session *s);
/* RESUME is answered, by rows from `begin` on: one for each that it has, as far as there is room. Returns how many; *more counts the others. */
unsigned jobs_tell(struct request_context *x, struct session *s, size_t begin, int64_t *more);
void jobs_tell_lost(struct request_context *x, struct session *s); /* the losses that its client does not know yet */

/* A record of the previous run: the session had this job. False: it is not sound. */
bool job_restore(struct request_context *x, struct session *s, const struct journal_record *r);
bool job_restore_lost(struct request_context *x, struct session *s, const struct journal_record *r); /* it has lost it; likewise */
void job_restore_known(const struct session *s, const struct journal_record *r); /* its client knows that it has it */
void job_restore_ending(const struct session *s, const struct journal_record *r); /* the home was asked to end it */
void job_restore_over(struct request_context *x, struct session *s, const struct journal_record *r);
void jobs_adopt(struct request_context *x, struct session *s); /* after the last record */

void jobs_free_all(struct request_context *x);

#endif
