/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readers of several daemons hold a name together: the stores keep a share for each daemon in one key. A lease is shared from the moment when a store is first
 * asked to share its value. See ALGORITHMS.md, Readers of several daemons.
 */
#ifndef CORE_SHARED_LEASE_H
#define CORE_SHARED_LEASE_H

#include "daemon/core/round/engine_data.h"

/* A renewal or an adoption begins. Where readers hold a lease that stands alone, it is shared from now on. */
void shared_lease_begin(struct round *r);
/* The next renewal is due at this moment, if it was due later. */
void shared_lease_ask_again(struct engine *e, struct lease *x, struct instant at);
/* Readers hold the lock here, and somebody elsewhere waits: it may be a reader. The lease is shared by the next renewal, which is due now. */
void shared_lease_open(struct engine *e, struct lock *l);
/* A reader that does not wait was refused for a writer elsewhere: the stores are asked whether that writer is still there, once a second. */
void shared_lease_refused(struct engine *e, struct lock *l);

/*
 * The line of the lock has changed. If a writer waits behind this share, its ticket is shown to the stores, with each renewal; else it is withdrawn. While
 * readers wait, for a writer elsewhere, renewals tell whether that writer is still there.
 */
void shared_lease_line_up(struct engine *e, struct lock *l);
/* The ticket that this renewal shows; "": none. */
struct span shared_lease_ticket(struct engine *e, const struct round *r);
void shared_lease_show(struct engine *e, struct lease *x, struct call *call, struct span ticket);

#endif
