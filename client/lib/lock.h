/* SPDX-License-Identifier: BSD-2-Clause */
/* What the public functions about one lock and those about several share. */
#ifndef CLIENT_LOCK_H
#define CLIENT_LOCK_H

#include "client/lib/conn.h"

/* Asks CHECK for a grant that an answer told. When redlockd is away for too long, the grant is given back later. */
int lock_anchor(struct redlock *c, const char *name, struct redlock_grant *ret_grant) REDLOCK_MUST;

#endif
