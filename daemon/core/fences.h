/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fences that stores show, and what a join has to lift the fence of a store to that forgot its own: see daemon/core/quorum.h.
 * What a store forgot stands at others as well, as long as no more than a minority forgets. The last token that was granted with a vote of a
 * store that forgot was granted before the quarantine of that store ended. So the others are asked after that.
 * One that does not answer then may be the only one that knows that token. So what the store may have issued before its clock was set back counts as well.
 * See ALGORITHMS.md, Fencing tokens.
 */
#ifndef CORE_FENCES_H
#define CORE_FENCES_H

#include "daemon/core/members.h"

/* Before what a node showed is forgotten, or is told to another. */
void fences_note(struct members *ms, const struct member *m);
/* What a join lifts the fence of m to, unless the clock of m says more; 0: nothing is known. */
int64_t fences_floor(struct members *ms, const struct member *m);
/* The nodes that have not told their fence since the quarantine of m ended, and may do so yet. m is one of them: its clock may have been set back meanwhile. */
struct nodeset fences_unasked(const struct members *ms, const struct member *m);

#endif
