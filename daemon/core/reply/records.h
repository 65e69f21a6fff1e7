/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon writes into the journal for its next run. Only sessions with grace have records. See journal.h and EFFECT_JOURNAL. */
#ifndef CORE_RECORDS_H
#define CORE_RECORDS_H

#include "daemon/core/event/journal.h"
#include "daemon/core/session/semaphore.h"

/* Records, as effects. They are written before the lines of the same step are sent. */
void remember(struct request_context *x, const struct journal_record *record); /* of any kind */
void record_daemon(struct request_context *x); /* comes before all other records: this daemon has written the values that they name */
void record_session(struct request_context *x, const struct session *s);
void record_all_of(struct request_context *x, const struct session *s); /* and records of what it holds and has lost */
void record_over(struct request_context *x, const struct session *s);
void record_held(struct request_context *x, struct claim *c); /* it holds its lock, on its present terms */
void record_freed(struct request_context *x, const struct claim *c);
void record_permit(struct request_context *x, const struct permit *p); /* if it is held: one record for each of its claims */
void record_permit_lost(struct request_context *x, const struct permit *p);  /* HELD or LOST: one record of the loss replaces those of its claims */
void record_permit_freed(struct request_context *x, const struct permit *p);
void record_lost(struct request_context *x, const struct claim *c);

struct job;
void record_job(struct request_context *x, const struct job *job);      /* its session has it */
void record_job_known(struct request_context *x, const struct job *job); /* and its client knows that */
void record_job_ending(struct request_context *x, const struct job *job); /* the home is asked to end it */
void record_job_lost(struct request_context *x, const struct job *job);
void record_job_over(struct request_context *x, const struct job *job); /* its session no longer has it */

/* For a snapshot: records some more sessions. The first call begins the snapshot. False: it is complete. */
bool record_more(struct request_context *x);

#endif
