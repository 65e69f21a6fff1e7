/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A restart: all that the next process needs to go on, as records (journal.h), whichever build it is. What the journal has of sessions with grace there is of
 * all sessions; and what they wait for, as lines, which are served again as if they had come when they came here. What was seen of the stores:
 * member_records.h. See restore.h.
 *
 * Left behind on purpose, as in a crash, because it comes again, or costs a wait at most:
 *   votes of holds that readers share, or about which something is to be found out   they are adopted; the end that each had is handed over, so that a loss
 *                   is told in time. All other holds go on with their votes: no store is asked before the next renewal
 *   names of a LOCKALL or an ACQUIRE that is not answered   they are freed, and asked for again
 *   requests whose connection dropped   they have lost their place; a hold that was won for such a session is handed over
 *   calls under way    a value that one of them may have set is handed over as one to be deleted; of others the client hears that the outcome is not known
 *   the end of a job whose session is gone   the lease of the home ends, and the job is due again
 *   failed AUTHs    their delays begin anew, and AUTHs under way are asked again, with their secrets
 *   events for those who watch   they hear how many were missed
 *   RECENT, former and remote holders, alarms, figures, and rates of the memory store   they begin anew
 * A daemon that drains is not restarted so.
 */
#ifndef CORE_HANDOVER_H
#define CORE_HANDOVER_H

#include "daemon/core/session/request_context.h"

/* The records, as effects: DAEMON first. It changes nothing of note: the process may go on all the same. */
void hand_over(struct request_context *x);
/* A client waits for what a store, or a slice of a LIST, is about to answer: such a request cannot be served again. */
bool hand_over_is_awaited(const struct request_context *x);
/* The stores that PLACED counts, as a text in memory of the effects. */
struct span hand_over_stores(struct core *core);

#endif
