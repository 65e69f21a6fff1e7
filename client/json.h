/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the protocol as JSON. rows.def knows which fields are text; any other field is a number if it looks like one.
 */
#ifndef CLIENT_JSON_H
#define CLIENT_JSON_H

#include "client/redlock.h"
#include "proto/span.h"
#include <stdio.h>

/* One object with all fields of the line; with_words: its words before them as "reply", "code" and "text". */
void json_line(FILE *out, const struct redlock_line *line, bool with_words);
/*
 * A JSON string of any bytes. A byte that is not part of well-formed UTF-8 becomes a lone low surrogate, \udc80 to \udcff, from
 * which it can be restored (Python: surrogateescape).
 */
void json_string(FILE *out, struct span text);

#endif
