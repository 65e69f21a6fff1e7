/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/lease_owner.h"

#include "daemon/core/engine/hold.h"

void lease_owner_notify(struct engine *e, struct lease *x, enum notice_kind kind)
{
	const struct lock *l = lock_of_lease(x);

	for (struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		notices_add(&e->notices, kind, c, NULL, NOT_REFUSED);
}

void lease_owner_denied(struct engine *e, struct lease *x, char code)
{
	x->broken |= code == 'X';
	if (code == 'X')
		hold_broken(e, lock_of_lease(x));
}

void lease_owner_evicted(struct engine *e, struct lease *x)
{
	hold_lose(e, lock_of_lease(x), x->broken ? LOSS_BROKEN : LOSS_EVICTED);
}

void lease_owner_expire(struct engine *e, struct lease *x)
{
	hold_lose(e, lock_of_lease(x), x->broken ? LOSS_BROKEN : x->auto_renew ? LOSS_QUORUM : LOSS_EXPIRED);
}
