/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls to the memory store that wait for a later pass of the loop, in order. Each is kept with all that it points to, so the service may go on. As a
 * Redis does, the store has the call, and answers when it comes to it.
 */
#ifndef DAEMON_BACKLOG_H
#define DAEMON_BACKLOG_H

#include "daemon/base/pool.h"
#include "daemon/core/event.h"

#include <sys/queue.h>

struct backlog {
	struct pool pool;
	STAILQ_HEAD(, backlog_item) items;
};

void backlog_init(struct backlog *b);
void backlog_release(struct backlog *b); /* what still waits is dropped */
bool backlog_is_empty(const struct backlog *b);
void backlog_add(struct backlog *b, const struct call *call);
/* False: there is none. What the call points to stays until it is dropped. */
bool backlog_first(const struct backlog *b, struct call *ret_call);
void backlog_drop_first(struct backlog *b);

#endif
