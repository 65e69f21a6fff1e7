/* SPDX-License-Identifier: BSD-2-Clause */
/* What the stores tell of their queues: rows with a name and figures, and a page of such rows, in the order of the names. It knows no session and no call. */
#ifndef CORE_QUEUE_ROWS_H
#define CORE_QUEUE_ROWS_H

#include "daemon/core/reply/page.h"

#define QUEUE_FIGURES 4 /* due, leased, dead, next_ms; the last -1: not known */

/* A row of the list of queues of a store. */
struct queue_row {
	struct span name;
	int64_t figure[QUEUE_FIGURES];
};

/* Takes the next row off the text. False: there is none. */
bool queue_row_read(struct span *text, struct queue_row *ret_row);

unsigned queue_rows_add(struct page *p, const struct queue_row *row);
/* Its name is a part of the page. */
struct queue_row queue_rows_get(const struct page *p, size_t i);

#endif
