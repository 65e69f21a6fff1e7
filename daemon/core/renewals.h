/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often a second the watchdog renews what sessions have on leases shorter than RENEWALS_LONG_US: limits.renewals bounds it for all sessions, for those of
 * one peer (half), and for one session (a twentieth). Longer leases are bounded by limits.locks.
 *
 * A session's figure is counted anew at each of its requests for such a lease. That of its peer, and of all, is summed up every 100 ms, and grows by each
 * request in between. With each sum the figures of other sessions are counted anew as well: of all of them, unless they have thousands of leases.
 */
#ifndef CORE_RENEWALS_H
#define CORE_RENEWALS_H

#include "daemon/core/commander.h"

#define RENEWALS_LONG_US (10 * SEC)

/* Whether the request that is being served may have a lease of this length; false: it was refused. */
bool renewals_allow(struct commander *x, struct session *s, int64_t ttl_us);

#endif
