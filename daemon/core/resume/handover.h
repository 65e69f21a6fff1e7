/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A restart: all that the next process needs to go on, as records (journal.h), whichever build it is. What the journal has of sessions with grace there is of all
 * sessions; and what they wait for, as lines, which are served again as if they had come when they came here. Left behind are the places of requests whose
 * connection dropped, and names that a LOCKALL or an ACQUIRE has which is not answered yet: these are freed, and asked for again. See restore.h.
 */
#ifndef CORE_HANDOVER_H
#define CORE_HANDOVER_H

#include "daemon/core/session/commander.h"

/* The records, as effects: DAEMON first. It changes nothing of note: the process may go on all the same. */
void hand_over(struct commander *x);
/* A client waits for what a store, or a slice of a LIST, is about to answer: such a request cannot be served again. */
bool hand_over_is_awaited(const struct commander *x);
/* The stores that PLACED counts, as a text in memory of the effects. */
struct span hand_over_stores(struct core *core);

#endif
