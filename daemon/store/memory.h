/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory store: the calls and votes of one Redis node, in C, pure, with injected time. Its clock is CLOCK_BOOTTIME plus an
 * offset that is fixed at the start, so nothing can step it. A differential test compares it with the Lua scripts on a real server.
 * See ALGORITHMS.md, Memory store.
 */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H

#include "daemon/core/event/event.h"

struct memory;
struct job_file;
struct jobs_found;
struct keyfile;

struct memory_conf {
	uint64_t seed[2];
	int64_t epoch_us; /* server clock = instant + epoch_us; never negative */
	int64_t skew_us;      /* how far ahead of the clock a join lifts the fence */
	int64_t tolerance_us; /* how much further than skew_us the fence may run */
	const char *run_id; /* copied */
	struct keyfile *file; /* NULL: the keys end with the process. It must outlive the store */
};

struct memory *memory_new(const struct memory_conf *conf);
void memory_free(struct memory *m);

/* Carries out the call and fills in the answer, whose spans are valid until the next memory_call. Never fails. */
void memory_call(struct memory *m, const struct call *call, struct instant now, struct answer *ret_answer);

/* For the state file, see state.h. memory_count includes expired keys that are not reclaimed yet. */
size_t memory_count(const struct memory *m);
int64_t memory_clock(const struct memory *m, struct instant now); /* the clock of the store (TIME), in microseconds */
struct span memory_marker(const struct memory *m);                /* "" = absent */
int64_t memory_fence(const struct memory *m);
void memory_set_fence(struct memory *m, int64_t fence); /* never lowers the fence */
/* Adds a key that an earlier run granted. value "" matches no call. until INSTANT_NEVER: no TTL. */
void memory_put(struct memory *m, struct span name, struct span value, struct instant until);
/* The same. Shares in the value end by the clock of that run: later_ms is added for the clock of this store. */
void memory_put_later(struct memory *m, struct span name, struct span value, struct instant until, int64_t later_ms);

/*
 * The jobs: see job_keep.h. memory_restore_jobs before the first call; without it they end with the process. memory_write_jobs before answers leave.
 * The file must outlive the store.
 */
void memory_restore_jobs(struct memory *m, struct job_file *file, int64_t later_ms, struct jobs_found *ret);
int memory_write_jobs(struct memory *m);
/* This answer depends on changes that the file of jobs lacks: it is valid only after memory_write_jobs has succeeded. Rows of LIST promise nothing. */
bool memory_answer_is_unwritten(const struct memory *m, const struct call *call, const struct answer *a);
/* Too many bytes of jobs are unwritten: call memory_write_jobs before any further call. To write them takes a while. */
bool memory_unwritten_is_much(const struct memory *m);
/* Why the mark of this run cannot be written (see state.h), a negative errno, or 0: a probe reports it. */
void memory_unmarked(struct memory *m, int error);
/* Retries what found no room: jobs, and names in their file. Call it now and then. True: names find room, and more of them wait. */
bool memory_look(struct memory *m);

/* Visits every live key in name order, so that the state file is reproducible. value "": it matches no call. */
void memory_each(struct memory *m, struct instant now,
		 void (*visit)(void *context, struct span name, struct span value, struct instant until), void *context);

/* For the simulator and tests: a key of another type, DEL or eviction of a key, and reading a live key. */
void memory_put_foreign(struct memory *m, struct span name, struct instant until);
void memory_remove(struct memory *m, struct span name);
bool memory_get(struct memory *m, struct span name, struct instant now, struct span *ret_value, struct instant *ret_until);

#endif
