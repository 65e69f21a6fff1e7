/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets: the place of a name in the queue among daemons. */
#ifndef CORE_TICKET_H
#define CORE_TICKET_H

#include "daemon/core/round/engine_data.h"

void ticket_take(struct engine *e, struct contender *k); /* takes a ticket for the first patient waiter, unless there is one that still fits */
/* Somebody waits, and the ticket is not the right one: because of a priority the first waiter is another one, or a writer has come behind readers. */
bool ticket_is_outdated(const struct contender *k);
/* Somebody waits, and fewer than a quorum of stores know the right ticket: no wake-up comes, or too late. */
bool ticket_is_unseen(const struct engine *e, const struct contender *k);
/* The place that this waiter has among the tickets, by the clock of the stores. */
int64_t ticket_place_us(const struct engine *e, const struct claim *c);
/* The same of whoever asks at that moment. */
int64_t ticket_place_since(const struct engine *e, struct instant asked_at, int64_t priority);
struct span ticket_text(const struct engine *e, const struct contender *k); /* in memory of the effects; "" = no ticket */
void ticket_send(struct engine *e, struct release *r); /* the withdrawal is admitted */
void ticket_hurry_all(struct engine *e); /* the daemon stops: sends all withdrawals that wait */
void ticket_withdraw_at(struct engine *e, struct name *name, const struct stamp *ticket, struct nodeset nodes); /* once, as soon as they are not too busy */
void ticket_withdraw(struct engine *e, struct contender *k); /* takes the ticket out of the queues; the name keeps it for later */
void ticket_spend(struct engine *e, struct contender *k, struct nodeset granted);
void ticket_end(struct engine *e, struct contender *k); /* nobody waits for the name any more, but for those of ticket_returns */

#endif
