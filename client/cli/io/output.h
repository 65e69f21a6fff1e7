/* SPDX-License-Identifier: BSD-2-Clause */
/* What redlock says: complaints on standard error, and what a line of the daemon tells, for people or as JSON (proto/json.h), on standard output. */
#ifndef CLIENT_OUTPUT_H
#define CLIENT_OUTPUT_H

#include "client/lib/display.h"
#include "client/lib/redlock.h"

/* Whether stderr takes a line at once. A stopped terminal does not, nor does a full pipe. */
bool stderr_is_ready(void);
/* Writes one line, "redlock: …". A reader who has closed the other end does not end this process. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes what was printed so far. False: standard output did not take all of it, errno says why, and output_end will say so. */
bool output_flush(void);
/* The exit code of a command that has printed: code; or EX_UNAVAILABLE, after a complaint, if standard output did not take all of it. */
int output_end(int code);

/* --- the fields of a line --- */

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
