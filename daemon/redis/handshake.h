/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands that are no script calls, as RESP; and the part of a server's error text that may be logged. */
#ifndef REDIS_HANDSHAKE_H
#define REDIS_HANDSHAKE_H

#include "daemon/base/buf.h"
#include "proto/span.h"

/* Appends a command. format: its words, in which hiredis knows %s, %b (bytes, size_t) and %u; a value is never split. */
void handshake_put(struct buf *out, const char *format, ...);
void handshake_auth(struct buf *out, const char *user, const char *password); /* user NULL: AUTH with the password alone */

/* A script whose answer is the run id of the server; "": not given. */
#define HANDSHAKE_EVAL "local i = redis.pcall('INFO', 'server') return type(i) == 'string' and string.match(i, '\\nrun_id:(%w*)') or ''"

/*
 * Copies a server's error text for the log: one line, cut to size, NUL-terminated. If the text repeats the secret or its beginning, only an
 * error code at its start is kept. secret may be NULL.
 */
void handshake_reason(struct span text, const char *secret, char *ret_reason, size_t size);

#endif
