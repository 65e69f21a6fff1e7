/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal of a daemon, as daemon/journal.c keeps it: what was written before the daemon died is there for its next life, as the page cache keeps it;
 * of a pass whose replies had not left, the end may be missing; writing may fail, and the file may be lost.
 */
#ifndef SIM_JOURNAL_H
#define SIM_JOURNAL_H

#include "daemon/base/buf.h"
#include "daemon/core/event.h"
#include "daemon/core/journal.h"
#include "tests/sim/plan/plan.h"

struct sim_daemon;

struct sim_journal {
	struct buf bytes;     /* of each record its length, 4 bytes, and then itself */
	size_t pass;          /* where the records of the last pass begin */
	int64_t depart;       /* true time when what that pass sends leaves */
	bool there;           /* a next life can read it */
	bool failing, failed; /* it cannot be written; and the service has yet to hear of it */
	bool mended;          /* it can be written again, which a daemon that stands still has yet to find out */
	uint64_t torn;        /* the last life of which the next has not read all that was said; 0: none */
	char inherited[NAMES_MAX][(JOURNAL_PRIORS + 1) * VALUE_MAX]; /* by name: the values of its last record, separated by blanks; "" if there is none */
};

void journal_init(struct sim_journal *j);
void journal_release(struct sim_journal *j);
void journal_pass(struct sim_daemon *d, int64_t depart); /* a pass begins */
void journal_append(struct sim_daemon *d, struct span record);
void journal_settle(struct sim_daemon *d);  /* a pass has ended */
void journal_died(struct sim_daemon *d);    /* with its daemon */
void journal_restore(struct sim_daemon *d); /* its next life reads it */
void journal_lose(struct sim_journal *j);   /* the file goes */
void journal_fail(struct sim_daemon *d, bool on);
/* It stood at a node, or might, as that daemon's former life last knew it. */
bool journal_may_adopt(const struct sim_journal *j, int64_t name, struct span value);

#endif
