/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pushes that have arrived and were not yet asked for, in their order.
 */
#ifndef CLIENT_PUSHES_H
#define CLIENT_PUSHES_H

#include "client/lib/line.h"
#include <sys/queue.h>

#define MISSED     "! MISSED" /* the library says it: events were not told */
#define PUSHES_MAX 4096 /* more losses than that, of which the caller takes none, end the connection */

struct push {
	STAILQ_ENTRY(push) next;
	struct redlock_line line;
	char bytes[]; /* text, then scratch */
};

struct pushes {
	STAILQ_HEAD(, push) arrived;
	size_t n;
	bool missed;        /* an EVENT was dropped: pushes_next says so first */
	struct push *shown; /* what pushes_next returned last */
};

void pushes_init(struct pushes *p);
void pushes_release(struct pushes *p);
/* Makes a push of n bytes, for pushes_add or push_free. -ENOMEM; -EPROTO: it cannot be read. */
int push_new(const char *from, size_t n, struct push **ret_push) REDLOCK_MUST;
void push_free(struct push *push);
/* Keeps the push; does not check PUSHES_MAX. */
void pushes_add(struct pushes *p, struct push *push);
/* Makes room for one push: if there is none, drops the oldest EVENT, or else the oldest that is no LOST. False: all are LOST. */
bool pushes_make_room(struct pushes *p);
/* The oldest, taken out, or NULL; valid until the next call. */
const struct redlock_line *pushes_next(struct pushes *p);

#endif
