/* SPDX-License-Identifier: BSD-2-Clause */
/* Since when each owner of the wait table has waited and held without a gap, as each store counts. See waittable.h. */
#ifndef CORE_WAITRECORDS_H
#define CORE_WAITRECORDS_H

#include "daemon/core/waitowners.h"

/* An owner as it was when members were exchanged last. */
struct record {
	uint64_t hash;
	uint64_t exchange; /* the first that told of it */
	int64_t place;
	int64_t since[NODES_MAX]; /* the number of the first exchange with each store that told of it; 0: none was answered yet */
};

struct record_list {
	struct record *item;
	unsigned count, cap;
};

struct records {
	struct record_list now, before; /* before: in order of their hashes; those of the exchange before, while the present ones are made */
};

void records_release(struct records *r);
/* For this exchange. Those that wait and hold as before keep their record. The records stand as the owners do, until records_sort. */
void records_renew(struct records *r, const struct wait_owners *owners, uint64_t exchange);
/* From now on records_find may be called. */
void records_sort(struct records *r);
/* NULL: there is none. */
const struct record *records_find(const struct records *r, uint64_t hash);

/* The store may be another one, which counts anew: what the one before said says nothing any more. */
void records_forget(struct records *r, unsigned node);
/* The store has answered the exchange of that number, as it counts. */
void records_answered(struct records *r, unsigned node, uint64_t exchange, int64_t number);

#endif
