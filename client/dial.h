/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the connection of a command.
 */
#ifndef CLIENT_DIAL_H
#define CLIENT_DIAL_H

#include "client/redlock.h"

#define ANSWER_TIMEOUT_MS 5000

/* Returns NULL after a complaint. addr may be NULL: see redlock_address. */
struct redlock *dial(const char *addr) REDLOCK_MUST;

#endif
