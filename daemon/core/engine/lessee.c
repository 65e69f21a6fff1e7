/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/lessee.h"

#include "daemon/core/engine/convert.h"
#include "daemon/core/engine/grant.h"
#include "daemon/core/engine/hold.h"

static void lock_notify(struct engine *e, const struct lock *l, enum notice_kind kind)
{
	for (struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		notices_add(&e->notices, kind, c, NULL, NOT_REFUSED);
}

void lessee_notify(struct engine *e, struct lease *x, enum notice_kind kind)
{
	switch ((enum lessee)x->lessee) {
	case LEASE_OF_LOCK:
		lock_notify(e, lock_of_lease(x), kind);
		break;
	}
}

void lessee_denied(struct engine *e, struct lease *x, char code)
{
	x->broken |= code == 'X';
	switch ((enum lessee)x->lessee) {
	case LEASE_OF_LOCK:
		if (code == 'X')
			hold_broken(e, lock_of_lease(x));
		break;
	}
}

void lessee_lose(struct engine *e, struct lease *x, enum loss why)
{
	switch ((enum lessee)x->lessee) {
	case LEASE_OF_LOCK:
		hold_lose(e, lock_of_lease(x), why);
		break;
	}
}

void lessee_evicted(struct engine *e, struct lease *x)
{
	lessee_lose(e, x, x->broken ? LOSS_BROKEN : LOSS_EVICTED);
}

void lessee_expire(struct engine *e, struct lease *x)
{
	lessee_lose(e, x, x->broken ? LOSS_BROKEN : x->auto_renew ? LOSS_QUORUM : LOSS_EXPIRED);
}

void lessee_belief_over(struct engine *e, struct lease *x)
{
	switch ((enum lessee)x->lessee) {
	case LEASE_OF_LOCK:
		hold_belief_over(e, lock_of_lease(x));
		break;
	}
}

void lessee_adopted(struct engine *e, struct lease *x, const struct round *r)
{
	switch ((enum lessee)x->lessee) {
	case LEASE_OF_LOCK:
		grant_adopted(e, lock_of_lease(x), r);
		convert_look(e, lock_of_lease(x));
		break;
	}
}

void lessee_renewed(struct engine *e, struct round *r)
{
	switch ((enum lessee)r->lease->lessee) {
	case LEASE_OF_LOCK:
		convert_renewed(e, r);
		break;
	}
}
