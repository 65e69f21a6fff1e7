/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line that the daemon sent: its bytes as they came, and what they say. The accessors are public (redlock.h).
 */
#ifndef CLIENT_LINE_H
#define CLIENT_LINE_H

#include "client/lib/buffer.h"
#include "client/lib/redlock.h"
#include "proto/proto.h"

struct redlock_line {
	struct reply_line parsed; /* its spans point into scratch */
	size_t n;
	char *text;    /* as it came, without LF */
	char *scratch; /* unquoted in place */
	struct buffer room; /* of both, if line_take made it */
};

/* Takes n bytes, for which text and scratch have room. -EPROTO: they are no line of the protocol; -ENOMSG: they may be one of a later version (reply_parse). */
int line_fill(struct redlock_line *line, const char *from, size_t n) REDLOCK_MUST;
/* The same, and makes the room: line_release frees it. -ENOMEM as well. */
int line_take(struct redlock_line *line, const char *from, size_t n) REDLOCK_MUST;
void line_release(struct redlock_line *line);
/*
 * A number of milliseconds, or a count, as reply_number() reads it, but within ten years in milliseconds. A daemon never tells more; whatever is connected
 * in its place may, and sums and products of these must not overflow.
 */
int64_t line_bounded(const struct reply_line *line, const char *field, int64_t otherwise);

#endif
