/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that block and cannot be interrupted, each in its own thread: none delays the loop, or another call. There are few, and most of the time none. All
 * functions here are called on the loop's thread.
 */
#ifndef BASE_OFFLOAD_H
#define BASE_OFFLOAD_H

#include <stdbool.h>

#define OFFLOAD_TASKS 100 /* under way at most: one more fails with EAGAIN */

struct offload;

/* The first member of the data of a call. */
struct task {
	void (*work)(struct task *t); /* in the thread; NULL: there is nothing to do but answer */
	/*
	 * Frees the task. wanted: it must answer first. Then this runs on the loop's thread, and error is 0, or an errno if no thread could be started, and
	 * `work` was not called. Otherwise it may run in a thread.
	 */
	void (*end)(struct task *t, bool wanted);
	int error;
	bool forgotten; /* its owner no longer wants it; for the loop's thread */
	struct offload *offload;
};

struct offload *offload_new(void);
/* Forgets all tasks. Those under way end by themselves. Not to be called from `end`. */
void offload_free(struct offload *o);
int offload_fd(const struct offload *o); /* readable once a task can end: then call offload_collect */
void offload_collect(struct offload *o);
void offload_begin(struct offload *o, struct task *t); /* it ends later, not in here */

#endif
