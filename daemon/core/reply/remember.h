/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon writes into the journal for its next run. Only sessions with grace have records. See journal.h and EFFECT_JOURNAL. */
#ifndef CORE_REMEMBER_H
#define CORE_REMEMBER_H

#include "daemon/core/event/journal.h"
#include "daemon/core/session/semaphore.h"

/* Records, as effects. They are written before the lines of the same step are sent. */
void remember(struct commander *x, const struct journal_record *record); /* whatever it is about */
void remember_daemon(struct commander *x); /* in front of all other records: it has written the values that they name */
void remember_session(struct commander *x, const struct session *s);
void remember_all_of(struct commander *x, const struct session *s); /* and of what it holds and has lost */
void remember_over(struct commander *x, const struct session *s);
void remember_held(struct commander *x, struct claim *c); /* it holds its lock, on the terms of this moment */
void remember_freed(struct commander *x, const struct claim *c);
void remember_permit(struct commander *x, const struct permit *p); /* if it is held: all of its claims */
void remember_permit_lost(struct commander *x, const struct permit *p);  /* HELD or LOST: of all of its claims nothing is left but the loss */
void remember_permit_freed(struct commander *x, const struct permit *p);
void remember_lost(struct commander *x, const struct claim *c);

struct job;
void remember_job(struct commander *x, const struct job *job);      /* its session has it */
void remember_job_known(struct commander *x, const struct job *job); /* and its client knows that */
void remember_job_ending(struct commander *x, const struct job *job); /* the home is asked to end it */
void remember_job_lost(struct commander *x, const struct job *job);
void remember_job_over(struct commander *x, const struct job *job); /* it no longer has it */

/* Of a snapshot: the records of some more sessions. The first call begins it. False: it is whole. */
bool remember_more(struct commander *x);

#endif
