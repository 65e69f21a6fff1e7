/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line that the daemon sent: its bytes as they came, what they say, and what an answer means. The accessors are public (redlock.h).
 */
#ifndef CLIENT_LINE_H
#define CLIENT_LINE_H

#include "client/lib/redlock.h"
#include "proto/proto.h"

/* Memory for a line, which grows with the longest: few are long. */
struct buffer {
	char *p; /* NULL: none yet */
	size_t size;
};

/* Has n bytes at least, with what is there. 0, or -ENOMEM: then it is as before. */
int buffer_grow(struct buffer *room, size_t n) REDLOCK_MUST;
void buffer_release(struct buffer *room);

struct redlock_line {
	struct reply_line parsed; /* its spans point into room, to a copy that was unquoted in place */
	size_t n;
	char *text; /* as it came, without LF */
	struct buffer room; /* of both */
};

/* Takes n bytes. -EPROTO: they are no line of the protocol; -ENOMSG: they may be one of a later version (reply_parse); -ENOMEM. It stands in room. */
int line_take(struct redlock_line *line, const char *from, size_t n) REDLOCK_MUST;
/* A field as a string; "" if there is none, or if it does not fit. */
void line_copy(const struct redlock_line *line, const char *field, char *out, size_t size);
/*
 * A number of milliseconds, or a count, as reply_number() reads it, but within ten years in milliseconds. A daemon never tells more; whatever is connected
 * in its place may, and sums and products of these must not overflow.
 */
int64_t line_bounded(const struct reply_line *line, const char *field, int64_t otherwise);

/* --- an answer: an outcome and a code word for the program, one line for a person --- */

/* Writes a message into out and returns err. */
int redlock_says(char *out, size_t size, int err, const char *format, ...) __attribute__((format(printf, 4, 5)));

#define CODE_BYTES    32
#define MESSAGE_BYTES 1024

/* The outcome. ret_code is set by ERR alone, ret_message by all but OK; both are printable. */
int outcome_of(const struct reply_line *answer, char ret_code[CODE_BYTES], char ret_message[MESSAGE_BYTES]);

#endif
