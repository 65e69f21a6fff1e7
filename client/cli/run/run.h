/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of CMD under a lock: a keeper gets the lock, CMD runs, the lock is free again.
 */
#ifndef CLIENT_RUN_H
#define CLIENT_RUN_H

#include "client/cli/io/invocation.h"
#include "client/lib/redlock.h"

struct run_end {
	bool granted; /* the lock was granted */
	bool started; /* CMD was executed */
	bool lost;    /* the lock was lost, and nothing of CMD is left */
	int signal;   /* the last one that asked CMD to end while it ran; 0: none did */
};

/* c was just opened; this call closes it. Returns the exit code of run. Some signals stay blocked: those that CMD was to get. */
int run_once(const struct invocation *in, struct redlock *c, struct run_end *ret_end);

#endif
