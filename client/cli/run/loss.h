/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the daemon tells that a grant was lost.
 */
#ifndef CLIENT_LOSS_H
#define CLIENT_LOSS_H

#include "client/lib/redlock.h"

/* The push LOST of one of these grants, or NULL. Drops the pushes before it. */
const struct redlock_line *loss_push(struct redlock *c, const struct redlock_grant *grants, unsigned n);
/* The stores or an administrator took the lock away: nothing protects it until the old deadline. */
bool loss_is_final(const struct redlock_line *push);
/* Whether the last answer refused because the session does not hold the lock. */
bool loss_refused(const struct redlock *c);

#endif
