/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores that deny the vote that they have given to a lease: the key was gone, or another's, although the vote stood. Denied votes are added up until all that
 * stand have been confirmed since: if the others are no quorum, somebody else may have held the lock. See ALGORITHMS.md, Renewal.
 */
#ifndef CORE_DENIED_VOTES_H
#define CORE_DENIED_VOTES_H

#include "daemon/core/round/round.h"

struct engine;

/* What an executed renewal says of the key, whatever became of the vote: whether anything of ours keeps others out there. */
void denied_votes_note_key(struct lease *x, const struct answer *a);
/* The answer denies the vote of its store. Before the vote is lowered. */
void denied_votes_note(struct engine *e, struct lease *x, const struct answer *a);
/* The answer to this round confirms it. */
void denied_votes_confirm(const struct engine *e, struct lease *x, const struct round *r, unsigned node);
/* A quorum has renewed the lease. */
void denied_votes_renewed(struct lease *x);
/*
 * Whether somebody else may have held the lock: the key may have been missing at so many stores at once that the others are no quorum. This holds even if
 * those stores have put the key back since. Behind the answer's effect on the votes.
 */
bool denied_votes_is_proven(const struct engine *e, const struct lease *x, const struct answer *a);

#endif
