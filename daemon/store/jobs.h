/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs of the memory store: daemon/redis/lua/jobs.lua in C, except that nobody is woken, because a memory store has one daemon. With a file they outlast
 * the process: see job_keep.h. What cannot be written is refused.
 */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

#include "daemon/base/buf.h"
#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "daemon/core/event/event.h"

#include <sys/queue.h>

struct job_queue;
struct job_file;
struct job_row;
struct ledger;

struct job_store {
	struct job_file *file; /* NULL: the jobs end with the process */
	struct job_queue **queue; /* those that have jobs, in the order of their names */
	size_t count, cap;
	struct heap dead; /* queues with jobs that have failed for good, by when the first of them did, or earlier */
	struct ledger *ledger;
	uint64_t number;   /* of the last job; the file knows each by its number */
	/* What the file is still to be told: jobs that have changed, and the numbers of those that are gone. */
	TAILQ_HEAD(, job_row) changed;
	uint64_t *gone;
	size_t gone_n, gone_cap;
	size_t unwritten;  /* about so many bytes */
	uint64_t inode;    /* of the file that has the rest */
	/* No queue: the DEFERs that were carried out, each by its nonce, in the list DUE by the moment from which on no try of it may be. */
	struct job_queue *deferred;
	uint64_t seed[2];
};

void jobs_init(struct job_store *s, const uint64_t seed[2], struct ledger *ledger);
void jobs_release(struct job_store *s);
/* One operation; rest: its arguments. The answer has the time of the store already; its text is written to `said`. */
void jobs_call(struct job_store *s, const struct call *c, struct span rest, struct buf *said, struct answer *a);

#endif
