/* SPDX-License-Identifier: BSD-2-Clause */
/* What a line of the daemon says: its fields, and the whole line as JSON on stdout (proto/json.h). */
#ifndef CLIENT_FIELD_H
#define CLIENT_FIELD_H

#include "client/lib/redlock.h"
#include "proto/span.h"

/* The value; p is NULL if the line has no such field. */
struct span field_of(const struct redlock_line *line, const char *field);
bool field_is(const struct redlock_line *line, const char *field, const char *text);
/* As a terminal may see it (shown_text), "" if the line has none. Returns its length. */
size_t field_show(const struct redlock_line *line, const char *field, char *out, size_t size);
/* Whether the value of this field is a duration, in milliseconds. */
bool field_is_duration(struct span field);
/* A name as a terminal may see it. Returns out. */
#define SHOWN_BYTES 200
const char *shown(const char *name, char out[SHOWN_BYTES]);
/* A round trip: "0.21 ms". Returns out. */
#define RTT_BYTES 32
const char *rtt_text(int64_t us, char out[RTT_BYTES]);

/* One object with all fields of the line; with_words: its words before them as "reply", "code" and "text". */
void json_print_line(const struct redlock_line *line, bool with_words);
/* A text behind what stands before it. */
void json_print_text(const char *before, const char *text);

#endif
