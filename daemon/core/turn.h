/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets: the place of a name in line among daemons. */
#ifndef CORE_TURN_H
#define CORE_TURN_H

#include "daemon/core/parts.h"

#define TICKET_MAX (VALUE_MAX - 1)
void turn_take(struct engine *e, struct lock *l); /* a ticket for the first in line, if it waits and there is none */
bool turn_is_unseen(const struct engine *e, const struct lock *l); /* somebody waits, and fewer than a quorum of stores know the ticket: no wake-up comes */
struct span turn_text(const struct engine *e, const struct lock *l); /* in memory of the effects; "" = no ticket */
void turn_send(struct engine *e, struct op *op); /* WITHDRAW: its turn has come */
void turns_hurry(struct engine *e); /* the daemon stops: there will be no turn */
void turn_withdraw(struct engine *e, struct lock *l); /* the ticket is kept, for later */
void turn_spend(struct engine *e, struct lock *l, struct nodeset granted);

#endif
