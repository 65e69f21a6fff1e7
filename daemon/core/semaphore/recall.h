/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Permits of the previous run. Each claim of a permit has a record of its own, with JOURNAL_PERMIT, under the name of the mark or of the slot. Its owner is
 * SEAT_OWNER, a number of the permit, the limit and how many slots the permit has, each with a blank behind it, and then the owner as the client gave it. A
 * permit of which a record is missing was not told to its client.
 *
 * The loss of a permit is one record LOST under the name of the semaphore, as its client gave it. Its owner is JOURNAL_LOSS_OWNER, the number, the limit, how
 * many slots it had and the slot, each with a blank behind it, and then the owner. It supersedes the records of the claims.
 *
 * A permit has one slot. Records of permits of several, which earlier builds wrote, are skipped: RESUME has no row of them, and their keys end at the stores.
 */
#ifndef CORE_RECALL_H
#define CORE_RECALL_H

#include "daemon/core/engine/adoption.h"
#include "daemon/core/event/journal.h"
#include "daemon/core/semaphore/permits.h"

/* A record HELD or ADOPTING of the session, with the values that it names. The name has no other holder but of the same lease. -EBADMSG. */
int recall_seat(struct commander *x, struct session *s, const struct journal_record *r, const struct prior_lease *from);
/* A record FREED. False: it is of no permit of the session. */
bool recall_freed(struct commander *x, struct session *s, const struct journal_record *r);
bool recall_is_loss(const struct journal_record *r); /* LOST or FREED: it is about the loss of a permit */
/* Such a record LOST. -EBADMSG. */
int recall_loss(struct commander *x, struct session *s, const struct journal_record *r, enum loss why);
/* The claim of a permit that another record supersedes. */
void recall_drop(struct commander *x, struct claim *c);
void recall_drop_all(struct commander *x, struct session *s); /* the session was over */
/* All records are read: the permits that are whole are asked for at the stores, and the others are dropped. */
void recall_end(struct commander *x, struct session *s);

#endif
