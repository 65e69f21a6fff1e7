/* SPDX-License-Identifier: BSD-2-Clause */
/* UNLOCK, EXTEND, CHECK: requests about a lock that the session has. */
#ifndef CORE_HELD_LOCKS_H
#define CORE_HELD_LOCKS_H

#include "daemon/core/session/request_context.h"

void lock_unlock(struct request_context *x, struct session *s);
void lock_extend(struct request_context *x, struct session *s);
void lock_check(struct request_context *x, struct session *s);

#endif
