/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store whose clock was set forward before this daemon first looked at it shows no jump, but keys may have expired early there. So a store
 * is suspected if its clock is too far ahead of the others', and of this host's as well: else the others may have been set back. It is compared again when a
 * step may hide between two looks at it, because they lie far apart or tell little of its clock.
 *
 * The daemon compares a clock until it is certain that it is not ahead: a late answer says little of a clock, and if the stores of a minority that is ahead
 * answer first, they agree with each other. A clock that seems to be ahead is suspected only once the others were asked later than its store: if this host
 * stood still since they were asked last, the first store to be seen after that seems to be ahead. Until then the store is not used.
 * A clock that goes back before that is certain was ahead, and was set right: by more than the tolerance, or, once it seemed to be ahead, by any amount.
 * See ALGORITHMS.md, Restart guard.
 */
#ifndef CORE_CLOCK_FIRST_LOOK_H
#define CORE_CLOCK_FIRST_LOOK_H

#include "daemon/core/member/members.h"

/* Compares the clock of m with the others', if that is not done yet. True: it was too far ahead, so m may have lost keys; only once. */
bool first_look_was_ahead(struct members *ms, struct member *m);

/* This host stood still for so long, at least, since m was looked at, or before that. */
void first_look_note_stop(struct member *m, int64_t least_us);
/* The clock of m was set back by so much, at least, beyond drift and what is not noticed. */
void first_look_note_back(const struct members *ms, struct member *m, int64_t back_us);

#endif
