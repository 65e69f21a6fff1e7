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
#ifndef CORE_PERMIT_RESTORE_H
#define CORE_PERMIT_RESTORE_H

#include "daemon/core/engine/adopted_lease.h"
#include "daemon/core/event/journal.h"
#include "daemon/core/semaphore/permits.h"

/* A record HELD or ADOPTING of the session, with the values that it names. The name has no other holder but of the same lease. -EBADMSG. */
int permit_restore_seat(struct request_context *x, struct session *s, const struct journal_record *r, const struct prior_lease *from);
/* A record FREED. False: it is of no permit of the session. */
bool permit_restore_freed(struct request_context *x, struct session *s, const struct journal_record *r);
bool permit_restore_is_loss(const struct journal_record *r); /* LOST or FREED: it is about the loss of a permit */
/* Such a record LOST. -EBADMSG. */
int permit_restore_loss(struct request_context *x, struct session *s, const struct journal_record *r, enum loss why);
/* The claim of a permit that another record supersedes. */
void permit_restore_drop(struct request_context *x, struct claim *c);
void permit_restore_drop_all(struct request_context *x, struct session *s); /* the session was over */
/* All records are read: the permits that are whole are asked for at the stores, and the others are dropped. */
void permit_restore_end(struct request_context *x, struct session *s);

#endif
