/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that defer work and take it: what they know, see worker.c and job_lock.c. */
#ifndef SIM_WORKER_H
#define SIM_WORKER_H

#include "daemon/base/heap.h"
#include "daemon/base/instant.h"
#include "proto/span.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"

struct conn;
struct request_sim;
struct sim_client;

/* ASK_CHORE: a request about the queues w0 … */
enum chore_ask { CHORE_DEFER, CHORE_TAKE, CHORE_CHECK, CHORE_DONE, CHORE_RETRY, CHORE_REVIVE, CHORE_DROP, CHORE_JOBS, CHORE_LIST, CHORE_LOCK };
#define CHORE_QUEUES 2
#define CHORES_MAX   600
#define CHORE_LOCKS  3

/* A client that takes chores. */
struct work {
	struct timer timer;
	struct stream stream;
	struct conn *conn;       /* over which it asks */
	bool asks;               /* its TAKE is not answered */
	const struct conn *ended_on; /* over which it last said that it has ended a chore: which one … */
	int64_t ended;               /* … */
	int64_t chore;           /* that it has; -1: none */
	int64_t again;           /* a DEFER of this one is repeated; -1: of none */
	int64_t dead;            /* that has failed for good, as a row said; -1: none */
	struct instant deadline; /* of its belief, by its own clock; PAST: it has none */
	int64_t until;           /* in true time */
	struct job_locking {     /* see job_lock.c */
		struct stream stream;
		int64_t name, fence;     /* the lock that it has with the chore, which is that of the name r0 …; -1: none … */
		int64_t chore;           /* … and that chore … */
		bool lost;               /* … which is lost, unless its loss is acknowledged */
		struct instant deadline; /* of its belief in that */
		int64_t until;           /* in true time */
		int64_t keeps_until;     /* true time until which it keeps the chore */
	} lock;
};

/* worker.c: deferred work, in some worlds. */
int64_t chore_number(struct span id); /* -1: it is none */
int64_t chore_queue(int64_t chore); /* the number of its queue */
void worker_row(struct sim_client *c, const struct request_sim *q, struct span line);
void worker_begin(struct sim_client *c);
void worker_fired(struct sim_client *c);
void worker_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok);
void worker_pushed(struct sim_client *c, struct span line);
void worker_disclaim(struct sim_client *c);

/* job_lock.c: the locks of chores, where they are names of readers and writers. */
int64_t chore_lock(const struct plan *p, int64_t chore); /* -1: it has none of these */
void job_locker_begin(struct sim_client *c);
bool job_locker_keeps(const struct sim_client *c); /* the chore, for now */
void job_locker_taken(struct sim_client *c, const struct request_sim *q, struct span line);
void job_locker_checked(struct sim_client *c, const struct request_sim *q, struct span line, bool ok);
void job_locker_pushed(struct sim_client *c, struct span line);
void job_locker_disclaim(struct sim_client *c);
bool job_locker_says(struct sim_client *c); /* something about the lock; false: nothing */
const char *job_locker_ttl(struct sim_client *c); /* the field of a TAKE; "": none */

#endif
