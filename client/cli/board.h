/* SPDX-License-Identifier: BSD-2-Clause */
/* What top shows: what the daemon tells of its stores and locks, and how that is laid out in lines. */
#ifndef CLIENT_BOARD_H
#define CLIENT_BOARD_H

#include "client/lib/redlock.h"
#include "proto/proto.h"

#include <stdio.h>

enum board_order {
	BOARD_CONTENDED, /* the most waiters first, then the longest held */
	BOARD_HELD,      /* the longest held first */
	BOARD_NAME,
	BOARD_ORDERS
};

struct board_lock {
	char *name; /* NUL-terminated; name_n bytes before that */
	size_t name_n;
	char holder[96];
	int64_t held_ms, valid_ms; /* -1: not told */
	int64_t waiters;
	bool alarm; /* held for longer than alarm.held */
};

struct board {
	char server[64], store[32];
	int64_t nodes, joined, quorum, lease_ms;
	int64_t locks_held, waiters, sessions, grants, grants_before; /* figures of STATS */
	int64_t at_us, before_us;                                     /* when these were asked */
	char *stores;                                                 /* a line for each two stores */
	struct board_lock *lock;
	size_t n;
	int64_t more;          /* locks that are left out: of several pages the first ones of the order are kept */
	enum board_order order;
	char after[NAME_MAX_BYTES]; /* the last name of a page */
	size_t after_n;
	bool failed;           /* out of memory */
};

struct board_view {
	unsigned width, height; /* of the terminal; height 0: all lines */
	size_t selected, top;   /* rows: whose queue is shown, and the first that is shown */
	enum board_order order;
	bool marks; /* mark the selected row, and the header */
};

void board_release(struct board *b);
/* Asks the daemon anew, page after page, and sorts. Returns what redlock_request returns. */
int board_ask(struct board *b, struct redlock *c, enum board_order order) REDLOCK_MUST;
/* Writes the lines: the state of the daemon, the stores, the locks, and the queue of the selected one, which it asks for. Changes view->top. */
int board_print(FILE *out, const struct board *b, struct redlock *c, struct board_view *view) REDLOCK_MUST;

#endif
