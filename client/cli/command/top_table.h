/* SPDX-License-Identifier: BSD-2-Clause */
/* What top shows: what the daemon tells of its stores and locks, and how that is laid out in lines. */
#ifndef CLIENT_TOP_TABLE_H
#define CLIENT_TOP_TABLE_H

#include "client/lib/redlock.h"
#include "proto/proto.h"

#include <stdio.h>

enum top_table_order {
	TOP_TABLE_CONTENDED, /* the most waiters first, then the longest held */
	TOP_TABLE_HELD,      /* the longest held first */
	TOP_TABLE_NAME,
	TOP_TABLE_ORDERS
};

struct top_table_lock {
	char *name; /* NUL-terminated; name_n bytes before that */
	size_t name_n;
	char holder[96];
	int64_t held_ms, valid_ms; /* -1: not told */
	int64_t waiters;
	bool alarm; /* held for longer than alarm.held */
};

struct top_table {
	char server[64], store[32];
	int64_t nodes, joined, quorum, lease_ms;
	int64_t locks_held, waiters, sessions, grants, grants_before; /* figures of STATS */
	int64_t at_us, before_us;                                     /* when these were asked */
	char *stores;                                                 /* a line for each two stores */
	struct top_table_lock *lock;
	size_t n;
	int64_t more;          /* locks that are left out: of several pages the first ones of the order are kept */
	enum top_table_order order;
	char after[NAME_MAX_BYTES]; /* the last name of a page */
	size_t after_n;
	bool failed;           /* out of memory */
};

struct top_table_view {
	unsigned width, height; /* of the terminal; height 0: all lines */
	size_t selected, top;   /* rows: whose queue is shown, and the first that is shown */
	enum top_table_order order;
	bool marks; /* mark the selected row, and the header */
};

void top_table_release(struct top_table *b);
/* Asks the daemon anew, page after page, and sorts. Returns what redlock_request returns. */
int top_table_ask(struct top_table *b, struct redlock *c, enum top_table_order order) REDLOCK_MUST;
/* Writes the lines: the state of the daemon, the stores, the locks, and the queue of the selected one, which it asks for. Changes view->top. */
int top_table_print(FILE *out, const struct top_table *b, struct redlock *c, struct top_table_view *view) REDLOCK_MUST;

#endif
