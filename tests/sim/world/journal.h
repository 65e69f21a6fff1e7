/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal of a daemon, as daemon/files/journal.c keeps it. What was written before the daemon died is there for its next run, as the page cache keeps it.
 * Of a pass whose replies had not left, the end may be missing; writing may fail, and the file may be lost.
 */
#ifndef SIM_JOURNAL_H
#define SIM_JOURNAL_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"
#include "daemon/core/event/journal.h"
#include "tests/sim/plan/plan.h"

struct sim_daemon;

struct sim_journal {
	struct buf bytes;                                         /* each record: its length in 4 bytes, then the record */
	struct buf next;                                          /* likewise, a snapshot that is being written */
	bool rewriting;                                           /* it is */
	size_t pass;                                              /* offset of the records of the last pass */
	int64_t passed_at;                                        /* true time when it began */
	int64_t depart;                                           /* true time when the replies of that pass leave */
	bool there;                                               /* the next run can read it */
	bool failing, failed;                                     /* it cannot be written; the service does not know yet */
	bool mended;                                              /* it can be written again, but the daemon stands still and does not know yet */
	uint64_t torn;                                            /* the last run that may have said what is not read here; 0: none */
};

void journal_init(struct sim_journal *j);
void journal_release(struct sim_journal *j);
void journal_pass(struct sim_daemon *d, int64_t depart); /* a pass begins */
void journal_append(struct sim_daemon *d, struct span record);
void journal_written(struct sim_daemon *d); /* what was appended in this pass is in the file, whatever happens to the process */
void journal_settle(struct sim_daemon *d);  /* a pass has ended */
void journal_died(struct sim_daemon *d);    /* with its daemon */
void journal_go_on(struct sim_daemon *d);   /* a new process writes all that it knows */
void journal_restore(struct sim_daemon *d); /* the next run reads it */
void journal_lose(struct sim_journal *j);   /* the file is lost */
void journal_fail(struct sim_daemon *d, bool on);

#endif
