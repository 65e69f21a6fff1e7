/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of redlock: complaints on standard error; and lines of the daemon on standard output, for people or as JSON (proto/json.h). */
#ifndef CLIENT_OUTPUT_H
#define CLIENT_OUTPUT_H

#include "client/lib/display.h"
#include "client/lib/redlock.h"
#include "proto/span.h"

#include <locale.h>

/* Whether stderr accepts a line at once. A stopped terminal or a full pipe does not. */
bool stderr_is_ready(void);
/* Writes one line, "redlock: …". If the reader has closed the other end, this process does not end. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes what was printed so far. False: standard output did not accept all of it. errno says why, and output_end will complain. */
bool output_flush(void);
/* Returns the exit code of a command that has printed: code, or EX_UNAVAILABLE after a complaint if standard output did not accept everything. */
int output_end(int code);

/* --- the fields of a line --- */

/* Returns the value; p is NULL if the line has no such field. */
struct span field_of(const struct redlock_line *line, const char *field);
bool field_is(const struct redlock_line *line, const char *field, const char *text);
/* Writes the field, escaped for a terminal (shown_text); "" if the line has none. Returns its length. */
size_t field_show(const struct redlock_line *line, const char *field, char *out, size_t size);
/* Whether the value of this field is a duration, in milliseconds. */
bool field_is_duration(struct span field);
/* Escapes a name for a terminal. Returns out. */
#define SHOWN_BYTES 200
const char *shown(const char *name, char out[SHOWN_BYTES]);
/* Writes a round trip: "0.21 ms". Returns out. */
#define RTT_BYTES 32
const char *rtt_text(int64_t us, char out[RTT_BYTES]);

/* Prints one object with all fields of the line. with_words: before them its words, as "reply", "code" and "text". */
void json_print_line(const struct redlock_line *line, bool with_words);
/* Prints `before`, and then the text. */
void json_print_text(const char *before, const char *text);

/* --- lines for a terminal, piece by piece --- */

/* Appends to out at `at`, and cuts at size. Returns the new end, the index of the NUL. */
size_t text_add(char *out, size_t at, size_t size, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns a locale for uselocale(3), because text is UTF-8 whatever the locale of the user is. 0: this system has none, and uselocale changes nothing. */
locale_t utf8_locale(void);

/* Returns the columns that shown text takes. A wide character takes two. */
size_t shown_width(struct span text);

#endif
