/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether so few stores vote that nobody gets a lock, as LIST nodes tells.
 */
#ifndef CLIENT_QUORUM_SHORTAGE_H
#define CLIENT_QUORUM_SHORTAGE_H

#include "client/lib/redlock.h"

#define QUORUM_SHORTAGE_BYTES 160

/* Writes "too few Redis servers answer: 1 of 3, 2 are needed" into out, "" if enough do. Returns what redlock_request returns. */
int quorum_shortage_ask(struct redlock *c, char out[QUORUM_SHORTAGE_BYTES]) REDLOCK_MUST;

#endif
