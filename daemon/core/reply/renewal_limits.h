/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often a second the watchdog renews what sessions have on leases shorter than 10 s: limits.renewals bounds it for all sessions, for those of
 * one peer (half), and for one session (a twentieth). Longer leases are bounded by limits.locks. What a request that waits may come to hold counts already.
 *
 * A session's figure is counted anew at each of its requests for such a lease. That of its peer, and of all, is summed up every 100 ms, and grows by each
 * request in between. With each sum the figures of other sessions are counted anew as well: of all of them, unless they have thousands of leases.
 */
#ifndef CORE_RENEWAL_LIMITS_H
#define CORE_RENEWAL_LIMITS_H

#include "daemon/core/session/request_context.h"

/* Whether the request that is being served may have a lease of the length that it asks for; false: it was refused. */
bool ttl_is_allowed(struct request_context *x, struct session *s);

#endif
