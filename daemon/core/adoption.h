/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prior values: which values of the previous run may still stand at the stores, where, and until when. Asks no store; adopt.c does.
 *
 * The journal has the new value and all those that it replaces before any store is asked. So the next run accepts any of them: each store has one of them if
 * the lock was held there without a gap. Of more than JOURNAL_PRIORS + 1 values the oldest is forgotten: then the lock may be told lost.
 * See ALGORITHMS.md, Adoption.
 */
#ifndef CORE_ADOPTION_H
#define CORE_ADOPTION_H

#include "daemon/core/calls.h"
#include "daemon/core/lease.h"
#include "daemon/core/lock.h"

/* A lease as the journal has it. */
struct prior_lease {
	struct span name, value;
	struct span prior; /* values that may stand in its place, newest first, separated by blanks; at most JOURNAL_PRIORS count */
	struct instant prior_until; /* … until then */
	int64_t ttl_us; /* the longest that the client may have been told; the claim has the ttl of the renewals */
	struct instant deadline; /* of one that is not renewed */
};

struct adoption {
	bool asked;              /* some store was asked: the new value may stand there, too */
	struct nodeset stands; /* nodes where one of the values may stand */
	struct nodeset late; /* nodes that had none, but what the previous run sent could still put one there */
	struct nodeset occupied; /* nodes where another value stands: somebody else's, or one of ours that this run does not know */
	struct instant until; /* no value stands anywhere after this, even if an EXTEND to the recorded ttl left a longer key that one that hung renewed */
	struct instant hopeless; /* nobody believes in the lease after this: the adoption is given up */
	struct instant prior_until; /* all values but the first stand nowhere after this */
	struct instant deadline; /* of a lease that nobody renews; NEVER: it is renewed */
	size_t n, first;         /* bytes: of all, of the first */
	char values[];           /* newest first, separated by blanks */
};

/* Nothing is known of any store yet: the caller sets where the values may stand, and until when. */
struct adoption *adoption_new(const struct prior_lease *from, struct instant now);
/* Whether a record with these values is about this lease, which has prior values. */
bool adoption_is_of(const struct lease *x, struct span value, struct span prior);
void adoption_over(struct lease *x); /* forgets the values */
/* LEASE_ADOPTING, given up: its values are not released and end by themselves. A run on a copy of the journal may have renewed them meanwhile. */
void adoption_leave(struct lease *x);
/* What the next run needs to adopt a lease. The texts are borrowed. */
struct prior_lease adoption_record(struct core *core, const struct lease *x);

/* What the stores say. A lease without prior values is left alone. */
void adoption_note(struct lease *x, unsigned node); /* no prior value stands there */
/* None stood there when the store was asked, but a late command of the previous run may still put one there. */
void adoption_note_none(const struct call_table *calls, struct lease *x, unsigned node, struct instant asked_at);
void adoption_note_other(struct lease *x, unsigned node); /* another value stands there */

/* Whether a prior value may still stand there, and which: newest first, separated by blanks. */
bool adoption_is_left(const struct lease *x, unsigned node, struct span *ret_values);
/* The lease is released: returns the prior values that may still stand, newest first; adds to `nodes` where, and to `until` how long they may. */
struct span adoption_left(const struct call_table *calls, const struct lease *x, struct nodeset *nodes, struct instant *until);

/* LEASE_ADOPTING: the stores where the new value or a prior one may stand. */
struct nodeset adoption_possible(const struct lease *x);
/* LEASE_ADOPTING: so many stores have no key that nobody has the lock, even if all keys of the others are ours. */
bool adoption_is_denied(const struct lease *x, unsigned nodes);
/* LEASE_ADOPTING: when the adoption is given up. A lease that nobody renews is told lost as long before its end as any other. */
struct instant adoption_end(const struct lease *x);
/* LEASE_ADOPTING, of a lease that nobody renews: the ttl to ask for now, such that the votes last until `deadline`. */
int64_t adoption_rest_us(const struct lease *x, struct instant now);

#endif
