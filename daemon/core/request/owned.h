/* SPDX-License-Identifier: BSD-2-Clause */
/* UNLOCK, EXTEND, CHECK: requests about a lock that the session has. */
#ifndef CORE_OWNED_H
#define CORE_OWNED_H

#include "daemon/core/session/commander.h"

void lock_unlock(struct commander *x, struct session *s);
void lock_extend(struct commander *x, struct session *s);
void lock_check(struct commander *x, struct session *s);

#endif
