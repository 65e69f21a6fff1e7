/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory store of a daemon, as daemon/main/stores.c sets it up: server 0 is its node, in the same process. A call is carried out in the step that asks for
 * it, and its answer is a step of the same pass. Store, daemon and what they have not sent yet end together. What is left is the folder with their files, as it
 * stood: of the stores that the process made since the last fence in the text of daemon/store, any may be missing. The process can be killed at each of these
 * fences, and between its calls.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include "daemon/base/heap.h"
#include "daemon/store/job_keep.h"
#include "daemon/store/memory.h"
#include "daemon/store/state.h"
#include "tests/sim/world/files.h"
#include "tests/sim/world/server.h"

struct sim_daemon;

struct sim_store {
	struct sim_daemon *daemon;
	struct server *server;
	struct memory *memory; /* NULL: the daemon does not run */
	struct state state;
	struct job_file jobs;
	char dir[64];
	struct files left, before; /* what the last run has left; what stood at the last fence */
	unsigned opened;           /* counts the runs, those included that ended before they were served */
	unsigned boot;             /* counts the boots of its host */
	bool off;                  /* its host is off */
	int64_t points;            /* it is killed at the so many-th point from now; 0: it is not to be killed */
	int64_t again;             /* … of its next start, which is then repeated at once */
	bool knew;                 /* the last run that was served knew the keys of the run before, and no boot came between */
	bool starts;               /* it reads its journal: it is not killed in between */
	bool passes;               /* a pass is under way */
	bool killed;               /* its process has ended, and is to be taken away */
	bool finished;             /* it has ended in order */
	struct flights unwritten;  /* calls of this pass whose answers wait for the file of jobs */
	struct timer end;
};

struct sim_store *store_new(struct sim_daemon *d);
void store_free(struct sim_store *t);
/* Before the service is made: opens the files, and completes the configuration of the core. After its records are read: the store is there. */
void store_start(struct sim_store *t);
void store_up(struct sim_store *t);
/* Writes the jobs that have changed. False: the process was killed before. */
bool store_write(struct sim_store *t);
/* In a pass: carries out what the service has asked for. */
void store_pass(struct sim_store *t);
bool store_is_behind(const struct sim_store *t); /* calls wait for the next pass */
void store_take(struct sim_store *t); /* the call that the link has just collected */
/* EVENT_STOP is carried out: the state file is written. */
void store_finish(struct sim_store *t);
/* The daemon is gone. */
void store_end(struct sim_store *t);
/* The process ends at the so many-th point from now. 0: it is not to end any more. */
void store_arm(struct sim_store *t, int64_t points);
/* The host of the daemon, which is down, starts again, so long ago; the folder may be lost by that. */
void store_reboot(struct sim_store *t, int64_t ago_us, bool lost);
void store_ended_fired(struct timer *end);
void kill_point(void); /* the process that is to be killed may end here */

#endif
