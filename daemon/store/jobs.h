/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs of the memory store: daemon/redis/lua/jobs.lua in C, except that nobody is woken, because a memory store has one daemon. With a log they outlast
 * the process: see job_keep.h. What there is no room for in the log is refused.
 */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

#include "daemon/base/buf.h"
#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "daemon/core/event.h"

struct job_queue;
struct joblog;
struct ledger;

struct job_store {
	struct joblog *log; /* NULL: the jobs end with the process */
	struct job_queue **queue; /* those that have jobs, in the order of their names */
	size_t count, cap;
	struct heap dead; /* queues with jobs that have failed for good, by when the first of them did, or earlier */
	struct ledger *ledger;
	size_t live;      /* bytes in a log of all jobs */
	size_t ending;    /* … and of the ends of those that are leased */
	unsigned refused; /* enum job_change: what there was no room for the last time */
	/* No queue: the DEFERs that were carried out, each by its nonce, in the list DUE by the moment from which on no try of it may be. */
	struct job_queue *deferred;
	uint64_t seed[2];
};

void jobs_init(struct job_store *s, const uint64_t seed[2], struct ledger *ledger);
void jobs_release(struct job_store *s);
/* 0, or a negative errno: the log could not be written the last time. */
int jobs_error(const struct job_store *s);
/* One operation; rest: its arguments. The answer has the time of the store already; its text is written to `said`. */
void jobs_call(struct job_store *s, const struct call *c, struct span rest, struct buf *said, struct answer *a);

#endif
