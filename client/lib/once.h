/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of redlock_once and `redlock once`. The result of a run of NAME is a job in the queue once/NAME, which nobody takes. It is due when the
 * next run may begin, by the clock of the home of the queue. Records are read and written under the lock NAME.
 */
#ifndef CLIENT_ONCE_H
#define CLIENT_ONCE_H

#include "client/lib/redlock.h"

#define ONCE_QUEUE "once/"
#define ONCE_NAME_MOST (REDLOCK_NAME_BYTES - sizeof(ONCE_QUEUE))
#define ONCE_ROWS  8 /* one, and those of runs that broke off between two requests */

struct once_records {
	struct redlock_run last; /* the one that is due last; its `ran` is false if there is none */
	char ids[ONCE_ROWS][REDLOCK_JOB_BYTES];
	unsigned n;
};

/* -EMSGSIZE: the name is too long. */
int once_read(struct redlock *c, const char *name, struct once_records *ret_records) REDLOCK_MUST;

/* Fills in a run that begins on this host, and returns the moment. */
int64_t once_begin(struct redlock_run *ret_run);
void once_end(struct redlock_run *run, int64_t begun_us, int64_t every_ms, int status);
/* Stores its result. Then drops the old records. */
int once_write(struct redlock *c, const char *name, const struct once_records *old, const struct redlock_run *run) REDLOCK_MUST;

#endif
