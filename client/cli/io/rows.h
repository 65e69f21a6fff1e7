/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the rows of an answer on stdout: as a table for people, or as one JSON object a line. The columns are the fields that
 * the daemon sends.
 */
#ifndef CLIENT_ROWS_H
#define CLIENT_ROWS_H

#include "client/lib/redlock.h"
#include "proto/span.h"

struct rows; /* of a table: widths are known only at the end */

/* NULL: out of memory. order: the fields that come first, separated by blanks; other fields follow as they appear. */
struct rows *rows_new(bool json, const char *order);
/* Leaves out all fields that order did not name. */
void rows_close(struct rows *rows);
void rows_free(struct rows *rows);
/* Adds a row or, as JSON, prints it. rows_end tells when memory ran out. */
void rows_add(struct rows *rows, const struct redlock_line *line);
/* What the last row of a table has in this column of order, if it has nothing there. JSON has what the daemon sends. */
void rows_fill(struct rows *rows, const char *field, struct span text);
/* Prints the table. 0 or -ENOMEM. */
int rows_end(struct rows *rows) REDLOCK_MUST;

#endif
