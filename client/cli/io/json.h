/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON on stdout: see proto/json.h. */
#ifndef CLIENT_JSON_H
#define CLIENT_JSON_H

#include "client/lib/redlock.h"
#include "proto/span.h"

/* One object with all fields of the line; with_words: its words before them as "reply", "code" and "text". */
void json_print_line(const struct redlock_line *line, bool with_words);
void json_print_text(struct span text);

#endif
