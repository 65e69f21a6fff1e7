/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service on one memory store, with no daemon around it: time stands still unless it is moved, and what is sent to a session
 * goes to a function. For the hot path and the fuzzer.
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include "daemon/core/service.h"
#include "daemon/store/memory.h"

#define WORLD_WALL_US INT64_C(1700000000000000)

struct world {
	struct core_conf conf;
	struct service *service;
	struct memory *store;
	struct effects effects;
	struct instant now;
	bool store_is_up;
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
int world_eof(struct world *w, uint64_t session);
int world_gone(struct world *w, uint64_t session, enum gone how);
/* The store comes or goes. Going answers nothing that is in flight: nothing ever is, between steps. */
void world_store(struct world *w, bool up);
/* Time passes; what is due meanwhile is done at its time. */
void world_pass(struct world *w, int64_t us);
/* Until the service has looked at its store and its votes count. */
void world_settle(struct world *w);

#endif
