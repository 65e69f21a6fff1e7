/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which store is the home of a rate limit, or of a queue: the one with the largest weight for its name. Weights go by what the configuration calls the stores,
 * so all daemons must call them alike (see home.h). Highest random weight (Thaler, Ravishankar 1998): when the set of stores changes, only the names of the
 * stores that went or came move. Pure. See ALGORITHMS.md, Home.
 */
#ifndef CORE_RENDEZVOUS_H
#define CORE_RENDEZVOUS_H

#include "daemon/core/event/core.h"

/* What a question to a home is about. Limits and queues have name spaces of their own. NONE: what the store is called; such a question stays in home.c. */
enum home_of { HOME_OF_RATE, HOME_OF_QUEUE, HOME_OF_NONE };

/* The store that comes at this place for the name: 0 is its home, and when that is gone 1 is the next. */
unsigned rendezvous_node(const struct core *core, enum home_of of, struct span name, unsigned place);

#endif
