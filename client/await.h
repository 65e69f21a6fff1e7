/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for an answer: the one place of the library where time passes, but for connecting and the farewell.
 */
#ifndef CLIENT_AWAIT_H
#define CLIENT_AWAIT_H

#include "client/redlock.h"

/* The outcome of the request in flight. Waits wait_ms longer than the timeout; an answer that is not there by then breaks the connection. */
int await_answer(struct redlock *c, int64_t wait_ms) REDLOCK_MUST;

#endif
