/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/lock/notices.h"

#include "daemon/base/mem.h"


void notices_init(struct notices *n, struct lock_table *table)
{
	*n = (struct notices){.table = table};
}

void notices_release(struct notices *n)
{
	mem_free(n->item);
}

/* How often the owner of this claim holds the lock now, if the notice says so. */
static unsigned notices_count(enum notice_kind kind, const struct claim *c)
{
	const struct claim *holder = c->lock->holder;

	if (kind != NOTICE_REENTERED)
		return c->count;
	if (c->lock->share)
		holder = lock_find_reader(c->lock, c->session, claim_owner(c));
	return holder ? holder->count : 0;
}

void notices_add(struct notices *n, enum notice_kind kind, struct claim *c, struct pending *p, enum refusal why)
{
	if (n->count == n->cap) {
		n->cap = n->cap ? 2 * n->cap : 64;
		n->item = mem_grow(n->item, n->cap, sizeof(*n->item));
	}
	n->item[n->count++] = (struct notice){
		.kind = kind, .refusal = why, .claim = c, .pending = p, .count = c ? notices_count(kind, c) : 0};
	(c ? c->lock : p->lock)->name.refs++;
}

void notices_delivered(struct notices *n, const struct notice *told)
{
	struct lock *l = told->claim ? told->claim->lock : told->pending->lock;

	l->name.refs--;
	switch (told->kind) {
	case NOTICE_REENTERED:
	case NOTICE_REFUSED:
	case NOTICE_FORGOTTEN:
		claim_free(n->table, told->claim);
		break;
	case NOTICE_EXTENDED:
	case NOTICE_RELEASED:
	case NOTICE_SEEN:
		pending_free(&n->table->pendings, told->pending);
		break;
	default:
		break;
	}
	lock_drop_if_unused(n->table, l);
}

void notices_extended(struct notices *n, struct lease *x, unsigned count, enum refusal why)
{
	struct pending *p;

	while (count-- > 0 && (p = TAILQ_FIRST(&x->renewal->extends))) {
		TAILQ_REMOVE(&x->renewal->extends, p, in_lease);
		notices_add(n, NOTICE_EXTENDED, NULL, p, why);
	}
}
