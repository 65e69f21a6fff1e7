/* SPDX-License-Identifier: BSD-2-Clause */
/* What a name asks the stores for, and what the rounds before have left behind. move.c alone writes the state; a move to IDLE begins the counts anew. */
#ifndef CORE_CONTENDER_H
#define CORE_CONTENDER_H

#include "daemon/base/instant.h"
#include "daemon/core/admission.h"
#include "daemon/core/event.h"
#include "daemon/core/nodeset.h"
#include "daemon/core/state.h"

struct round;

#define TICKET_US (3 * SEC) /* a place in the queue lasts so long unless refreshed */

struct contender {
	struct admission_entry entry; /* QUEUED */
	enum contender_state state;
	struct timer timer;        /* when it is asked for again, or looked after */
	struct round *round;       /* ASKING: the undecided round */
	unsigned attempts;         /* rounds in a row that were split or found a holder: the pauses become longer with them */
	unsigned splits;           /* of these, the last in a row whose votes were split by one and the same value */
	uint64_t splitter;         /* that value, as round->holder */
	unsigned leads;            /* how many rounds more ask the leading store first, but not beyond lead_until: see split.c */
	struct instant lead_until;
	struct {
		uint32_t value;    /* of round->holder; 0: none */
		uint32_t since_ms; /* by our clock, as far as we know. As few bits as do: there are as many of these as names */
	} stood[NODES_MAX];        /* what was in the way at each store, when a round last heard from it */
	struct nodeset woken;      /* stores that said that the lock was freed, since the last round began */
	struct nodeset ticket_at;  /* stores where the ticket may stand in the queue */
	struct {
		int64_t us;        /* by the stores' clock; 0: none */
		struct instant at; /* the same by our clock */
		uint64_t sequence;
	} ticket;                  /* its place among daemons: see ticket.h */
};

#endif
