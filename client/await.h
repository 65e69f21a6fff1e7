/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for answers: the one place of the library where time passes, apart from connecting and the farewell.
 */
#ifndef CLIENT_AWAIT_H
#define CLIENT_AWAIT_H

#include "client/redlock.h"

/*
 * The outcome of the request in flight. Waits wait_ms longer than the timeout of the connection. Then the session goes on where
 * it is away (-ECONNABORTED), else the connection breaks (-ETIMEDOUT).
 */
int await_answer(struct redlock *c, int64_t wait_ms) REDLOCK_MUST;

#endif
