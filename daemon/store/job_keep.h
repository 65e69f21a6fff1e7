/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the log says of the jobs of a memory store, and what it makes of that after a crash. A record tells how a job stands, not what was done, so the last one
 * of a job counts. A job that was leased stays leased until the end of its lease, and has then had its attempt.
 *
 * Each lease ends with one record, and for these there is always room in the log: they are set apart when the job is taken. Another JOBLOG_SPARE bytes are
 * set apart for renewals. More work, and more leases, are refused as soon as half of what is left beside these bytes is live: so a snapshot pays whenever the
 * log is full.
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
	int error;      /* leases end later by the clock of this run, and the log does not say so: the next run may take them to be over before they are */
};

/* What a change is to the log. Each has room where the one before it has. */
enum job_change {
	JOB_NEW,   /* more work */
	JOB_TAKE,  /* work that is there goes on */
	JOB_RENEW,
	JOB_END    /* of a lease */
};

/* Whether a change may be made, before it is made: the log has room for so many bytes of records. Else joblog.error says why. */
bool jobs_may(struct job_store *s, size_t bytes, enum job_change change);
/* Bytes of the records below. */
size_t job_keep_bytes(struct span queue, size_t texts);
/* Tells the log how the job stands. texts: with those that never change, because it is new. */
void job_keep(struct job_store *s, const struct job_queue *q, struct job_row *j, bool texts);
void job_keep_gone(struct job_store *s, const struct job_queue *q, struct job_row *j);

/* Writes the log anew if somebody has removed it or has cut it, or if it must move. 0, or a negative errno: no job changes until it can be written. */
int jobs_look(struct job_store *s, bool moves) __attribute__((warn_unused_result));

/* Fills an empty store from the log, which it keeps from then on. */
void jobs_restore(struct job_store *s, struct joblog *log, const struct jobs_past *past, struct jobs_found *ret);
/*
 * The store has gone on from another process, and so does the log. 0, or a negative errno: there is no log, and no job changes until there is one; or the one
 * that is there is damaged.
 */
int jobs_go_on(struct job_store *s, struct joblog *log) __attribute__((warn_unused_result));

#endif
