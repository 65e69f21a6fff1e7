/* SPDX-License-Identifier: BSD-2-Clause */
/* EVENT_RULES: whoever waits for a name that the rules no longer let it lock is refused. What is held stays, and may be given back: see access.c. */
#ifndef CORE_REVOKE_H
#define CORE_REVOKE_H

#include "daemon/core/session/request_context.h"

void revoke_waiting(struct request_context *x);

#endif
