/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admission: who may begin a round now, given the room that the stores' windows have (flow.h). A value machine: it knows entries and room, no lock and no
 * store.
 *
 * Leases to be kept and those who ask are admitted by turns, so neither keeps the other waiting for ever. A lease whose first half is over goes before all who
 * ask: a crowd that asks costs nobody a lease. Among leases the one goes first whose first half ends first: who extends a crowd of long leases, over and over,
 * costs nobody a short one. A key that is to be left behind (UNLOCK keep=) goes before all leases: it may end any moment, and it is one question in place of
 * many renewals. What is given back goes before those who ask, so a name is released before it is asked for again.
 * See ALGORITHMS.md, Admission.
 */
#ifndef CORE_ADMISSION_H
#define CORE_ADMISSION_H

#include "daemon/base/heap.h"

#include <stdbool.h>
#include <sys/queue.h>

enum room {
	ROOM_NONE,
	ROOM_FOR_RELEASES, /* for what is given back; a round would wait for stores that may recover in a moment */
	ROOM_FOR_ALL,
};

enum admission_class {
	ADMISSION_KEEP,  /* a renewal, or an adoption: by when half of the lease is over */
	ADMISSION_LEAVE, /* a key that is left behind: before all of those */
	ADMISSION_GIVE_BACK,
	ADMISSION_ASK,
};

/* What it is embedded in is its owner's to know: `owner` is for him. */
struct admission_entry {
	TAILQ_ENTRY(admission_entry) link; /* GIVE_BACK, ASK */
	struct timer urgent;               /* KEEP, LEAVE */
	uint8_t class, owner;
	bool waits; /* until it is admitted, or leaves */
};
TAILQ_HEAD(admission_entries, admission_entry);

struct admission {
	struct heap keep;
	struct admission_entries give_back, ask;
	bool odd; /* every other time */
};

void admission_init(struct admission *a);
void admission_release(struct admission *a);

/* Whether it may begin now; else it waits. urgent_at: KEEP, when half of its lease is over. */
bool admission_ask(struct admission *a, struct admission_entry *x, enum room room, struct instant urgent_at);
/* The next that may begin, taken out; NULL: nobody. It counts as one admitted: ask until it has nobody. */
struct admission_entry *admission_next(struct admission *a, enum room room, struct instant now);
/* It need not begin any more. One that does not wait is left alone. */
void admission_leave(struct admission *a, struct admission_entry *x);

/* Nobody waits. */
static inline bool admission_is_idle(const struct admission *a)
{
	return a->keep.count == 0 && TAILQ_EMPTY(&a->give_back) && TAILQ_EMPTY(&a->ask);
}

#endif
