/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the connections to a node depend on: its address, TLS or not, user, password and database, the number of links, the prefix of keys and the channel of
 * the daemon. As a salted digest, since a password must not be written down.
 */
#ifndef REDIS_SETTINGS_H
#define REDIS_SETTINGS_H

#include "daemon/redis/upstream.h"
#include "tls/digest.h"

/* An address as one text, but for its label. The caller frees it. */
char *settings_address(const struct upstream_address *a);

void settings_digest(const struct upstream *u, unsigned node, const uint64_t salt[2], unsigned char ret_digest[TLS_DIGEST_BYTES]);
void settings_digest_scripts(const uint64_t salt[2], unsigned char ret_digest[TLS_DIGEST_BYTES]);

#endif
