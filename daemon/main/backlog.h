/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of calls to the memory store. One pass of the loop carries out a bounded number of calls; the others wait, in order, for a later pass.
 * A queued call is a copy with all that it points to, so the effects of the service may be reset. The service sees a store that answers late, as a
 * Redis server may.
 */
#ifndef DAEMON_BACKLOG_H
#define DAEMON_BACKLOG_H

#include "daemon/base/pool.h"
#include "daemon/core/event/event.h"

#include <sys/queue.h>

struct backlog {
	struct pool pool;
	STAILQ_HEAD(, backlog_item) items;
	unsigned left; /* calls that this pass may still carry out */
};

void backlog_init(struct backlog *b);
void backlog_release(struct backlog *b); /* drops the calls that still wait */
bool backlog_is_empty(const struct backlog *b);
void backlog_begin_pass(struct backlog *b, unsigned calls);
void backlog_end_pass(struct backlog *b); /* its time is over: it has room for no further call */
/* True: the caller must carry out a new call now: no other call waits, and the pass has room. The call is counted. */
bool backlog_lets_pass(struct backlog *b);
void backlog_add(struct backlog *b, const struct call *call);
/*
 * True: the caller must carry out the first queued call now. The call is counted; its spans are valid until backlog_drop_first.
 * False: the queue is empty, or the pass has no room.
 */
bool backlog_first(struct backlog *b, struct call *ret_call);
void backlog_drop_first(struct backlog *b);

#endif
