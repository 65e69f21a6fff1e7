/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices a wait that waits for itself: the lock is held by an outer redlock run, or for a script by redlock hold, and this command is a part of that. */
#ifndef CLIENT_SELF_WAIT_H
#define CLIENT_SELF_WAIT_H

#include "client/cli/io/invocation.h"

#define SELF_WAIT_BYTES 400

/* Whether it does, and a text for a person. c: a connection to ask; the request that waits occupies another. */
bool self_wait_find(struct redlock *c, const struct invocation *in, char out[SELF_WAIT_BYTES]);

#endif
