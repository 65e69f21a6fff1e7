/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the log says of the jobs of a memory store, and what it makes of that after a crash. A record tells how a job stands, not what was done, so the last one
 * of a job counts. A job that was leased stays leased until the end of its lease, and has then had its attempt.
 */
#ifndef STORE_JOB_KEEP_H
#define STORE_JOB_KEEP_H

#include "daemon/store/job_rows.h"
#include "daemon/store/joblog.h"

/* How the leases of another run are to be understood. */
struct jobs_past {
	int64_t later_ms; /* by the clock of this run they end so much later than they say */
	int64_t hold_ms;  /* by the clock of this run, when all are over: if records are damaged, no job is handed out before */
};

struct jobs_found {
	struct joblog_found log;
	size_t jobs;
	size_t unknown; /* records of jobs whose first record is missing */
};

/* Whether a change may be made, before it is made: the log has room for so many bytes of records. more: it adds to the work. Else joblog.error says why. */
bool jobs_may(struct job_store *s, size_t bytes, bool more);
/* Bytes of the records below. */
size_t job_keep_bytes(struct span queue, size_t texts);
/* Tells the log how the job stands. texts: with those that never change, because it is new. */
void job_keep(struct job_store *s, const struct job_queue *q, const struct job_row *j, bool texts);
void job_keep_gone(struct job_store *s, const struct job_queue *q, const struct job_row *j);

/* Fills an empty store from the log, which it keeps from then on. */
void jobs_restore(struct job_store *s, struct joblog *log, const struct jobs_past *past, struct jobs_found *ret);
/* The store has gone on from another process, and so does the log; moved: to another folder, where the log of somebody else may stand. */
void jobs_go_on(struct job_store *s, struct joblog *log, bool moved);

#endif
