/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for answers: the one place of the library where time passes, apart from connecting and the farewell.
 */
#ifndef CLIENT_AWAIT_H
#define CLIENT_AWAIT_H

#include "client/redlock.h"

#define ONCE_MS 1000 /* how long the daemon keeps a LOCK without a wait, or an EXTEND, when the stores are busy: redlock-protocol(7) */

/*
 * Waits for the outcome of the request in flight, wait_ms longer than the timeout of the connection. Then gives the request up:
 * -ECONNABORTED if the session goes on (exchange_give_up), else the connection breaks with -ETIMEDOUT.
 */
int await_answer(struct redlock *c, int64_t wait_ms) REDLOCK_MUST;

#endif
