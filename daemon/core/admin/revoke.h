/* SPDX-License-Identifier: BSD-2-Clause */
/* EVENT_RULES: whoever waits for a name that the rules no longer let it lock is refused. What is held stays, and may be given back: see access.c. */
#ifndef CORE_REVOKE_H
#define CORE_REVOKE_H

#include "daemon/core/session/request_context.h"

/*
 * The new rules came. Sessions are judged in portions, by steps that follow at once; what gets its turn before its session is judged is held, as if it had been
 * granted right before.
 */
void revoke_waiting(struct request_context *x);
void revoke_again(struct request_context *x); /* the next portion */

#endif
