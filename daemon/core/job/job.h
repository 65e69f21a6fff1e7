/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a job that a session has: the watchdog renews its lease at the home of its queue; it is lost, done, failed or given back.
 * See ALGORITHMS.md, Jobs.
 */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include "daemon/core/session/jobs.h"

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

/* LOST, to the session. */
void job_tell_lost(struct request_context *x, struct job *job);
/* Sets its timer: to be renewed, or lost. */
void job_schedule(struct request_context *x, struct job *job);

/* The session loses the jobs that it has. Nobody else gets them before their leases are over. */
void jobs_lose(struct request_context *x, struct session *s, enum loss why);

void job_told(struct request_context *x, struct home_question *q);
void job_fired(struct request_context *x, struct job *job);
/* The votes of this store end that much sooner. */
void jobs_lower(struct request_context *x, unsigned node, int64_t sooner_us);

#endif
