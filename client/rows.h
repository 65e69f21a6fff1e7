/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of an answer on stdout: as a table for people, or one JSON object a line. Which columns there are is what the daemon sends;
 * rows.def knows which are text.
 */
#ifndef CLIENT_ROWS_H
#define CLIENT_ROWS_H

#include "client/redlock.h"

struct rows; /* of a table: widths are known only at the end */

/* NULL: out of memory. order: the fields that come first, separated by blanks; others follow as they appear. */
struct rows *rows_new(bool json, const char *order);
void rows_free(struct rows *rows);
/* Adds or, as JSON, prints one. Memory that is missing is told by rows_end. */
void rows_add(struct rows *rows, const struct redlock_line *line);
/* Prints the table; 0 or a negative errno, also of what stdout said before. */
int rows_end(struct rows *rows) REDLOCK_MUST;

#endif
