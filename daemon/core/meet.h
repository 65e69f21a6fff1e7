/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store whose clock was set forward before this daemon first looked at it shows no jump, but keys may have expired early there. If that set its clock too far
 * ahead of the others', and of this host's as well (else the others may have been set back), it is suspected. So is one that was not looked at for so long that
 * its step may hide in what clocks may drift apart.
 *
 * It is compared until it is certain that it is not ahead: an answer that came late says little of its store's clock, and where those of a minority answer
 * first they agree with each other. It is suspected only by what the others show when they are asked after it: if this host stood still since they
 * were asked last, the first store to be seen after that seems to be ahead. Until then it is not used.
 * See ALGORITHMS.md, Restart guard.
 */
#ifndef CORE_MEET_H
#define CORE_MEET_H

#include "daemon/core/members.h"

/* Compares the clock of m with the others', if that is not done yet. True: it was too far ahead, so m may have lost keys. Said once. */
bool meet_was_ahead(struct members *ms, struct member *m);

#endif
