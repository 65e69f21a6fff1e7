/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/lease_owner.h"

#include "daemon/core/engine/convert.h"
#include "daemon/core/engine/grant.h"
#include "daemon/core/engine/hold.h"

static void lock_notify(struct engine *e, const struct lock *l, enum notice_kind kind)
{
	for (struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		notices_add(&e->notices, kind, c, NULL, NOT_REFUSED);
}

void lease_owner_notify(struct engine *e, struct lease *x, enum notice_kind kind)
{
	switch ((enum lease_owner)x->lessee) {
	case LEASE_OF_LOCK:
		lock_notify(e, lock_of_lease(x), kind);
		break;
	}
}

void lease_owner_denied(struct engine *e, struct lease *x, char code)
{
	x->broken |= code == 'X';
	switch ((enum lease_owner)x->lessee) {
	case LEASE_OF_LOCK:
		if (code == 'X')
			hold_broken(e, lock_of_lease(x));
		break;
	}
}

void lease_owner_lose(struct engine *e, struct lease *x, enum loss why)
{
	switch ((enum lease_owner)x->lessee) {
	case LEASE_OF_LOCK:
		hold_lose(e, lock_of_lease(x), why);
		break;
	}
}

void lease_owner_evicted(struct engine *e, struct lease *x)
{
	lease_owner_lose(e, x, x->broken ? LOSS_BROKEN : LOSS_EVICTED);
}

void lease_owner_expire(struct engine *e, struct lease *x)
{
	lease_owner_lose(e, x, x->broken ? LOSS_BROKEN : x->auto_renew ? LOSS_QUORUM : LOSS_EXPIRED);
}

void lease_owner_belief_over(struct engine *e, struct lease *x)
{
	switch ((enum lease_owner)x->lessee) {
	case LEASE_OF_LOCK:
		hold_belief_over(e, lock_of_lease(x));
		break;
	}
}

void lease_owner_adopted(struct engine *e, struct lease *x, const struct round *r)
{
	switch ((enum lease_owner)x->lessee) {
	case LEASE_OF_LOCK:
		grant_adopted(e, lock_of_lease(x), r);
		convert_look(e, lock_of_lease(x));
		break;
	}
}

void lease_owner_renewed(struct engine *e, struct round *r)
{
	switch ((enum lease_owner)r->lease->lessee) {
	case LEASE_OF_LOCK:
		convert_renewed(e, r);
		break;
	}
}
