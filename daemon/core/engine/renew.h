/* SPDX-License-Identifier: BSD-2-Clause */
/* The watchdog: leases that are held are renewed. What an answer comes to is a value, on which the caller acts. */
#ifndef CORE_RENEW_H
#define CORE_RENEW_H

#include "daemon/core/round/engine_data.h"

/* One renewal round of a held lease. */
void renew_begin(struct engine *e, struct lease *x);
/* What an answer to a renewal or an adoption, or the end of the round's time, comes to. If the lease is not ours any more, the caller moves it. */
enum renew_outcome {
	RENEW_GOES_ON, /* the caller has nothing to do */
	RENEW_IS_ADOPTION,  /* the answer was noted: adopt_decide() concludes */
	RENEW_EVICTED, /* somebody else may have held the lock */
	RENEW_LEASE_OVER,    /* the loss is due: see lease_loss_is_due() */
};
enum renew_outcome renew_answered(struct engine *e, struct round *r, const struct answer *a);
enum renew_outcome renew_expired(struct engine *e, struct round *r);
/* A renewal is due: it begins now, or once it is admitted. */
void renew_due(struct engine *e, struct lease *x);
/* A quorum is back: leases that are at risk are renewed now, not at their next try, and those of the previous run are adopted. False: there are more. */
bool renew_make_due(struct engine *e);

#endif
