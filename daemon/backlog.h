/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls to the memory store: a pass of the loop carries out no more than so many, and the others wait for a later one, in order. Each is kept with all
 * that it points to, so the service may go on. As a Redis does, the store has the call, and answers when it comes to it.
 */
#ifndef DAEMON_BACKLOG_H
#define DAEMON_BACKLOG_H

#include "daemon/base/pool.h"
#include "daemon/core/event.h"

#include <sys/queue.h>

struct backlog {
	struct pool pool;
	STAILQ_HEAD(, backlog_item) items;
	unsigned left; /* calls that this pass may still carry out */
};

void backlog_init(struct backlog *b);
void backlog_release(struct backlog *b); /* what still waits is dropped */
bool backlog_is_empty(const struct backlog *b);
void backlog_begin_pass(struct backlog *b, unsigned calls);
/* One that comes now is carried out now: none waits before it, and the pass has room. It counts. */
bool backlog_lets_pass(struct backlog *b);
void backlog_add(struct backlog *b, const struct call *call);
/* The first that waits is to be carried out now; it counts. False: there is none, or the pass has no room. What it points to stays until it is dropped. */
bool backlog_first(struct backlog *b, struct call *ret_call);
void backlog_drop_first(struct backlog *b);

#endif
