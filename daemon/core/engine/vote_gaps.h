/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores that may have been without the key for a while although their votes stand: it was gone, or another's, or it came there after the grant. Such a vote
 * has a gap: it vouches only from the moment when the store said that it has the key. Gaps are added up until all votes that stand were confirmed since the
 * last one: if the others are no quorum when a store denies its vote, somebody else may have held the lock. See ALGORITHMS.md, Renewal.
 */
#ifndef CORE_VOTE_GAPS_H
#define CORE_VOTE_GAPS_H

#include "daemon/core/round/round.h"

struct engine;

/* Notes from an executed renewal whether a key of this daemon keeps others out at that store, whatever became of the vote. */
void vote_gaps_note_key(struct lease *x, const struct answer *a);

/* The answer to this round says that the key was there. Before the vote is raised, and before the store is `sure`. */
void vote_gaps_extended(struct engine *e, struct lease *x, const struct round *r, unsigned node);
/* The answer says that the key was put back, is missing, or is another's. Returns whether the store so denies a vote that stood. Before the vote changes. */
bool vote_gaps_denied(struct engine *e, struct lease *x, const struct answer *a);
/* The previous process has handed over the votes, and says that these have a gap: what it has asked these stores may yet put the key back. */
void vote_gaps_handed_over(struct engine *e, struct lease *x, struct nodeset nodes);
/* A quorum has renewed the lease. */
void vote_gaps_renewed(struct lease *x);

/* The votes without a gap are no quorum. This holds even if the stores have put the key back since. To be asked when a store has denied its vote. */
bool vote_gaps_are_too_many(const struct engine *e, const struct lease *x);

#endif
