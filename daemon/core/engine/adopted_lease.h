/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lease of the previous run that is being adopted: which stores may still vouch for it, and until when that is worth while. Asks no store; adopt.c does.
 * See ALGORITHMS.md, Adoption.
 */
#ifndef CORE_ADOPTED_LEASE_H
#define CORE_ADOPTED_LEASE_H

#include "daemon/core/lock/lease.h"

/* A lease as the journal has it. */
struct prior_lease {
	struct span name, value;
	int64_t ttl_us; /* the longest that the client may have been told; the claim has the ttl of the renewals */
	struct instant deadline; /* the latest that the client may have been told; a later renewal may have moved it on */
	struct instant end;      /* when it ends unless it is renewed, as the process before this one has handed it over; NEVER: that is not known */
	struct span votes;       /* until when each store keeps the value, an instant each, as that process has handed it over; empty: the stores are asked */
	struct nodeset gaps;     /* stores that may have been without the key meanwhile although these votes stand */
};

struct adoption {
	bool vouched;        /* the votes are those that the process before this one has handed over: no store is asked */
	struct nodeset left; /* stores that have not denied the value */
	struct nodeset occupied; /* stores where another value stands, perhaps one that an earlier version of the daemon was to replace by this one */
	struct instant hopeless; /* nobody relies on the lease after this: the adoption is given up */
	struct instant deadline; /* of a lease whose end is known; NEVER: it is not */
	size_t n;
	char value[]; /* as the journal has it */
};

/* The caller sets until when. */
struct adoption *adoption_new(struct span value, unsigned nodes);
void adoption_over(struct lease *x);
/* What the next run needs to adopt a lease. The texts are borrowed. */
struct prior_lease adoption_record(struct core *core, const struct lease *x);

/* LEASE_ADOPTING, all of these. Whether a record with this value is about this lease. */
bool adoption_is_of(const struct lease *x, struct span value);
/* The store says that the value is not there. What is set there later proves nothing, so it is not asked again. */
void adoption_denied(struct lease *x, unsigned node, bool occupied);
/* So many stores have no key of the lease that nobody has the lock, even if all keys of the others are ours. */
bool adoption_is_denied(const struct lease *x, unsigned nodes);
/* When the adoption is given up. A lease that nobody renews is told lost as long before its end as any other. */
struct instant adoption_end(const struct lease *x);
/* Of a lease that nobody renews: the ttl to ask for now, such that the votes last until `deadline`. */
int64_t adoption_rest_us(const struct lease *x, struct instant now);

#endif
