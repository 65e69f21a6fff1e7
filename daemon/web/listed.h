/* SPDX-License-Identifier: BSD-2-Clause */
/* What LIST locks and LIST queues have for one page of a snapshot, in the order of names. Embedded; zero-filled it is empty. It owns its names. */
#ifndef WEB_LISTED_H
#define WEB_LISTED_H

#include "proto/span.h"

#include <stdbool.h>
#include <stddef.h>

struct listed_row {
	char *name;
	size_t n;
	bool queue;        /* else a lock or a semaphore */
	size_t begin, end; /* where whoever added it has its fields */
};

struct listed {
	struct listed_row *row;
	size_t n, cap;
	size_t queues; /* how many rows are queues */
	size_t bytes;  /* of all names */
};

struct listed_row *listed_add(struct listed *l, struct span name, bool queue); /* valid until the next one */
/*
 * After the last row was added. more_locks, more_queues: these lists have rows beyond those that were added. Leaves a page of `most` rows, or of one more:
 * the next page begins behind a name, so a lock and a queue of one name stay together. Returns whether there is more behind the page.
 */
bool listed_arrange(struct listed *l, size_t most, bool more_locks, bool more_queues);
void listed_release(struct listed *l);

#endif
