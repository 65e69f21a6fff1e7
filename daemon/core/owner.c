/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/owner.h"

#include "daemon/core/grant.h"
#include "daemon/core/hold.h"

void owner_notify(struct engine *e, struct lease *x, enum notice_kind kind)
{
	switch ((enum lease_owner)x->owner) {
	case LEASE_OF_LOCK:
		notices_add(&e->notices, kind, lock_of_lease(x)->holder, NULL, REFUSED_NOT);
		break;
	}
}

void owner_contested(struct engine *e, struct lease *x)
{
	switch ((enum lease_owner)x->owner) {
	case LEASE_OF_LOCK:
		hold_contested(e, lock_of_lease(x));
		break;
	}
}

void owner_lose(struct engine *e, struct lease *x, enum loss why)
{
	switch ((enum lease_owner)x->owner) {
	case LEASE_OF_LOCK:
		hold_lose(e, lock_of_lease(x), why);
		break;
	}
}

void owner_expire(struct engine *e, struct lease *x)
{
	owner_lose(e, x, x->auto_renew ? LOSS_QUORUM : LOSS_EXPIRED);
}

void owner_closed(struct engine *e, struct lease *x)
{
	switch ((enum lease_owner)x->owner) {
	case LEASE_OF_LOCK:
		hold_closed(e, lock_of_lease(x));
		break;
	}
}

void owner_adopted(struct engine *e, struct lease *x, const struct round *r)
{
	switch ((enum lease_owner)x->owner) {
	case LEASE_OF_LOCK:
		grant_adopted(e, lock_of_lease(x), r);
		break;
	}
}
