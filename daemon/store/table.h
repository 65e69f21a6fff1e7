/* SPDX-License-Identifier: BSD-2-Clause */
/* Who waits for whom: daemon/redis/lua/table.lua in C. */
#ifndef STORE_TABLE_H
#define STORE_TABLE_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"

struct table_entry;

struct table {
	struct table_entry *item; /* sorted by daemon */
	size_t count, cap;
	struct buf shown; /* the last answer */
};

void table_release(struct table *t);
/* A call to a store with this marker. The caller has already set the time of the answer. The answer is valid until the next call. */
void table_call(struct table *t, struct span marker, const struct call *c, struct answer *a);

#endif
