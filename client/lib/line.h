/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line that the daemon sent: its bytes, its parts, and what it means as an answer. The accessors are public (redlock.h).
 */
#ifndef CLIENT_LINE_H
#define CLIENT_LINE_H

#include "client/lib/redlock.h"
#include "proto/proto.h"

/* Memory for a line. It grows to the longest line; few are long. */
struct buffer {
	char *p; /* NULL: none yet */
	size_t size;
};

/* Makes room for at least n bytes, and keeps the content. 0 or -ENOMEM; then nothing has changed. */
int buffer_grow(struct buffer *room, size_t n) REDLOCK_MUST;
void buffer_release(struct buffer *room);

struct redlock_line {
	struct reply_line parsed; /* its spans point to a copy in room, which was unquoted in place */
	size_t n;
	char *text; /* the line as it arrived, without LF */
	struct buffer room; /* for text and the copy */
};

/* Copies n bytes to room, and parses them. -EPROTO: they are no line of the protocol. -ENOMSG: they may be a line of a later version (reply_parse). -ENOMEM. */
int line_take(struct redlock_line *line, const char *from, size_t n) REDLOCK_MUST;
/* Copies a field as a string; "" if there is none, or if it does not fit. */
void line_copy(const struct redlock_line *line, const char *field, char *out, size_t size);
/*
 * Returns milliseconds or a count, as reply_number() reads it, but limited to ten years in milliseconds. A daemon never sends more, but another
 * program in its place might. Sums and products of these numbers must not overflow.
 */
int64_t line_bounded(const struct reply_line *line, const char *field, int64_t otherwise);

/* --- an answer: an outcome and a code word for the program, one line for a person --- */

/* Writes a message into out and returns err. */
int redlock_error_set(char *out, size_t size, int err, const char *format, ...) __attribute__((format(printf, 4, 5)));

#define CODE_BYTES    32
#define MESSAGE_BYTES 1024

/* Returns the outcome. Only ERR sets ret_code; all but OK set ret_message. Both are printable. */
int outcome_of(const struct reply_line *answer, char ret_code[CODE_BYTES], char ret_message[MESSAGE_BYTES]);

#endif
