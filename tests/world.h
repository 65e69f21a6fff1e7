/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service on one memory store, with no daemon around it: time stands still unless it is moved, and what is sent to a session
 * goes to a function. For the hot path and the fuzzer.
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include "daemon/base/buf.h"
#include "daemon/core/service.h"
#include "daemon/store/memory.h"

#include <sys/queue.h>

#define WORLD_WALL_US INT64_C(1700000000000000)

/* A call that the store has not answered yet, and until when whoever asked waits. */
struct held_call {
	TAILQ_ENTRY(held_call) next;
	struct call call;
	struct instant until;
	char bytes[];
};

struct world {
	struct core_conf conf;
	struct service *service;
	struct memory *store;
	struct effects effects;
	struct buf journal; /* {u32 length, record} … */
	struct instant now;
	bool store_is_up;
	bool store_is_slow;       /* calls wait for world_answer */
	bool store_is_lossy;      /* what was not answered in time was carried out nevertheless */
	TAILQ_HEAD(, held_call) held;
	void (*sent)(void *context, uint64_t session, struct span bytes);
	void (*hung_up)(void *context, uint64_t session);
	void *context;
};

void world_init(struct world *w);
void world_release(struct world *w);

/* Steps the service by the event, at the present time, and carries out all that it wants, calls on the store included. */
int world_step(struct world *w, struct event *event);

int world_open(struct world *w, uint64_t session);
int world_line(struct world *w, uint64_t session, char *line, size_t n); /* the bytes are overwritten */
int world_too_long(struct world *w, uint64_t session); /* instead of a line */
int world_parting(struct world *w, uint64_t session);
int world_eof(struct world *w, uint64_t session);
int world_gone(struct world *w, uint64_t session, enum gone how);
/* The store comes or goes. What was in flight is of unknown outcome then. */
void world_store(struct world *w, bool up);
/* From now on calls wait; the first of those that wait is carried out and answered. After 50 ms their outcome is unknown. */
void world_slow(struct world *w, bool slow);
void world_answer(struct world *w);
/*
 * kill -9 of the daemon: its sessions are no more, without a word, and a new one replays the journal. The store stays, and carries out what was in
 * flight only if it is lossy. True: the journal could be read.
 */
bool world_restart(struct world *w);
/* One more record for the journal, whatever it is. */
void world_journal(struct world *w, struct span record);
/* Time passes; what is due meanwhile is done at its time. */
void world_pass(struct world *w, int64_t us);
/* Until the service has looked at its store and its votes count. */
void world_settle(struct world *w);

#endif
