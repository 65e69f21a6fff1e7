/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of the jobs of a session when it ends, loses its connection, is resumed, or was one of the previous run. */
#ifndef CORE_SESSION_JOBS_H
#define CORE_SESSION_JOBS_H

#include "daemon/core/event/journal.h"
#include "daemon/core/session/jobs.h"

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
