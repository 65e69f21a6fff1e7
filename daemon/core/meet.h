/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store whose clock was set forward before this daemon first looked at it shows no jump, but keys may have expired early there. If that set its clock too far
 * ahead of the others', and of this host's as well (else the others may have been set back), it is suspected. It is compared again when a step may hide between
 * two looks at it, because they lie far apart or tell little of its clock.
 *
 * It is compared until it is certain that it is not ahead: an answer that came late says little of its store's clock, and if a minority of stores whose clocks
 * are ahead answers first, they agree with each other. A store is suspected only by what the others show when they are asked later than it: if this host
 * stood still since they were asked last, the first store to be seen after that seems to be ahead. Until then the store is not used.
 * A clock that is set right before that was ahead as well: it goes back by more than the tolerance, or, once it seemed to be ahead, by any amount.
 * See ALGORITHMS.md, Restart guard.
 */
#ifndef CORE_MEET_H
#define CORE_MEET_H

#include "daemon/core/members.h"

/* Compares the clock of m with the others', if that is not done yet. True: it was too far ahead, so m may have lost keys. Said once. */
bool meet_was_ahead(struct members *ms, struct member *m);

/* This host stood still for so long, at least, since m was looked at, or before that. */
void meet_note_stop(struct member *m, int64_t least_us);
/* The clock of m was set back by so much, at least, beyond drift and what is not noticed. */
void meet_note_back(const struct members *ms, struct member *m, int64_t back_us);

#endif
