/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fences that stores show, and how far a join must lift the fence of a store that forgot its own: see daemon/core/member/quorum.h.
 * Other stores show what one store forgot, as long as no more than a minority forgets. The last token that was granted with a vote of the forgetful
 * store was granted before its quarantine ended. So the others are asked after that.
 * Another store that does not answer then may be the only one that knows that token. So a join also counts what the forgetful store itself may have issued
 * before its clock was set back.
 * See ALGORITHMS.md, Fencing tokens.
 */
#ifndef CORE_FENCES_H
#define CORE_FENCES_H

#include "daemon/core/member/members.h"

/* Keeps the fence that m showed, if it is trusted and the largest. Called before that fence is forgotten, or told to another store. */
void fences_note(struct members *ms, const struct member *m);
/* The largest of them. */
int64_t fences_most(struct members *ms);
/* What a join lifts the fence of m to, unless the clock of m says more. */
int64_t fences_floor(struct members *ms, const struct member *m);
/* The nodes that have not told their fence since the quarantine of m ended, and may yet do so. m itself counts: its clock may have been set back meanwhile. */
struct nodeset fences_unheard(const struct members *ms, const struct member *m);

#endif
