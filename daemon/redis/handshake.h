/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands that are no script calls, as RESP; and what may be told of a server's refusal. */
#ifndef REDIS_HANDSHAKE_H
#define REDIS_HANDSHAKE_H

#include "daemon/base/buf.h"
#include "proto/span.h"

void handshake_auth(struct buf *out, const char *user, const char *password); /* user NULL: the password alone */
void handshake_select(struct buf *out, unsigned database);
void handshake_load(struct buf *out, struct span script);
void handshake_ping(struct buf *out);
void handshake_subscribe(struct buf *out, const char *channel);

/*
 * A server's text for the log: one line, cut to size, NUL-terminated. A text that repeats (part of) the secret is withheld but for its
 * first word; secret may be NULL.
 */
void handshake_reason(struct span text, const char *secret, char *ret_reason, size_t size);

#endif
