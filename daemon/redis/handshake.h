/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands that are no script calls, as RESP; and the part of a server's error text that may be logged. */
#ifndef REDIS_HANDSHAKE_H
#define REDIS_HANDSHAKE_H

#include "daemon/base/buf.h"
#include "proto/span.h"

void handshake_auth(struct buf *out, const char *user, const char *password); /* user NULL: AUTH with the password alone */
void handshake_select(struct buf *out, unsigned database);
void handshake_load(struct buf *out, struct span script);
#define HANDSHAKE_EVAL "local i = redis.pcall('INFO', 'server') return type(i) == 'string' and string.match(i, '\\nrun_id:(%w*)') or ''"
void handshake_eval(struct buf *out); /* the answer is the run id of the server; "": not given */
void handshake_ping(struct buf *out);
void handshake_role(struct buf *out); /* INFO replication: users who may probe a server may use INFO, but perhaps not ROLE */
void handshake_what(struct buf *out); /* INFO server: tells what kind of server answers */
void handshake_where(struct buf *out, const char *master); /* asks a sentinel */
void handshake_subscribe(struct buf *out, const char *channel);

/*
 * Copies a server's error text for the log: one line, cut to size, NUL-terminated. If the text repeats the secret or its beginning, only an
 * error code at its start is kept. secret may be NULL.
 */
void handshake_reason(struct span text, const char *secret, char *ret_reason, size_t size);

#endif
