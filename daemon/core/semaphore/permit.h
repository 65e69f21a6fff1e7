/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to permits: the functions of the files of this folder. */
#ifndef CORE_PERMIT_H
#define CORE_PERMIT_H

#include "daemon/core/event/journal.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/session/semaphore.h"

/* The lines about permits: to their clients, and to sessions that watch. */

/* Fields: name, permit, fence. */
void reply_permit(struct reply *r, const struct permit *p);
/* OK of its EXTEND. */
void permit_send_extended(struct request_context *x, const struct pending *p);
struct report report_of_permit(const struct permit *p);
/* Sends RISK or SAFE, with the remaining validity in that field; "! LOST" and NULL: its loss. */
void permit_send_push(struct request_context *x, const struct permit *p, const char *word, const char *field);
/* Returns how many permits are free, as far as this daemon knows. */
unsigned semaphore_free_slots(const struct semaphore *m);
/* Sends OK to an ACQUIRE, also to a repeated one. */
void permit_send_granted(struct request_context *x, struct permit *p, struct span tag);
void permit_watch(struct request_context *x, const struct permit *p, enum watch_kind kind);

/* The claims of a permit: an ordinary claim for each seat. */

/* Adds a permit to the semaphore. Its bid is open, and the rest is zeroed memory. */
void permit_add(struct permit *p, struct semaphore *m);
struct permit *permit_new(struct request_context *x, struct session *s, struct semaphore *m);
/* Asks for the mark, or for a slot. patient: waits until the permit leaves the queue. */
void permit_ask_mark(struct request_context *x, struct permit *p, bool patient);
void permit_ask_slot(struct request_context *x, struct permit *p, unsigned slot, bool patient); /* it has not asked for this slot yet */
void permit_ask_again(struct request_context *x, struct permit *p, struct seat *seat, bool patient); /* for a slot whose claim it has no longer */
bool seat_is_asked(const struct seat *seat);
/* One of the slots that it holds becomes its slot. It gives back the others, and leaves their queues. */
void permit_keep_slot(struct request_context *x, struct permit *p);
void permit_drop_all(struct request_context *x, struct permit *p);
/* HELD, LOST. The client may rely on its claims until then: see hold_abandon(). */
void permit_abandon(struct request_context *x, struct permit *p, struct instant until);
/* TRYING, FIRST: it holds some slot, or asks for some. */
bool permit_has_slot(const struct request_context *x, const struct permit *p);
bool permit_asks_slots(const struct permit *p);
struct seat *permit_seat(struct permit *p, const struct claim *c);
/* HELD: returns its mark or its slot if that is lost, even if the other is not. NULL: neither is. */
const struct seat *permit_lost_seat(const struct permit *p);

/* Gives back what is left, as for a client that relies on nothing, and frees the permit. Its semaphore stays. */
void permit_free(struct request_context *x, struct permit *p);

/* SUBSCRIBE, and CONTENDED about permits: who has one is told that others wait for permits of the semaphore. For locks see watch.h. */

enum contended_why {
	CONTENDED_NEWS,  /* the session has subscribed, or somebody has begun to wait, or still waits; sent at most every 100 ms */
	CONTENDED_FIRST, /* the session has got the permit */
};

void contended_send(struct request_context *x, struct permit *p, enum contended_why why);
/* A request of this daemon has begun to wait: tells those who have permits. */
void contended_send_all(struct request_context *x, const struct semaphore *m);

void serve_SUBSCRIBE(struct request_context *x, struct session *s);

/* What happens to the permits of sessions, by themselves and with their sessions. */

/* Processes a notice about a claim of a permit, or about its EXTEND. */
void permits_on_notice(struct request_context *x, const struct notice *n);
/* One of its claims is lost, and therefore the permit. The client is told. Nobody gets its slot while the client relies on it. */
void permit_lose(struct request_context *x, struct permit *p, enum loss why);
void permits_lose(struct request_context *x, struct session *s, enum loss why); /* all permits of the session */

/* Sends RISK or SAFE, if that has changed. */
void permit_note_risk(struct request_context *x, struct permit *p);
/* This permit has changed. Lets others of the semaphore continue: the next of the line, and those that are stalled. */
void semaphore_stir(struct request_context *x, struct semaphore *m);
/* The permit is gone, and its client needs no answer. */
void permit_end(struct request_context *x, struct permit *p);
/* Ends requests of that owner that were sent before the connection was lost, and were not repeated. */
void permits_give_up(struct request_context *x, struct session *s, struct span name, struct span owner);

/* It was held in the previous run, and the stores have not confirmed yet that it still is. */
bool permit_is_adopting(const struct permit *p);
unsigned permits_open(const struct session *s); /* how many permits of the session are being adopted */

/*
 * The session ends, and its bids are ending. waiting: those that wait leave the queues. Else: the others give back what they hold, and are freed. sure: the
 * client relies on nothing any more.
 */
void permits_end(struct request_context *x, struct session *s, bool waiting, bool sure);
/* The session has lost its connection, and goes on without one. */
void permits_detach(struct request_context *x, struct session *s);
/* The session has sent its last line. */
void permits_finish_up(struct request_context *x, struct session *s);

/*
 * The permits of a session whose client comes back: what RESUME reports of them, and how long the client may repeat requests for those that it does not know
 * of.
 */

/* Its client is told, and relies on it from now on. If the permit was granted while the client was away, it no longer lapses. */
void permit_notified(struct request_context *x, struct permit *p);
/* Adds rows to the answer to RESUME: one for each permit, if there is room. The answer begins at `begin`. Returns how many; *more counts the others. */
unsigned permits_send_rows(struct request_context *x, struct session *s, size_t begin, int64_t *more);
/* Call after the answer. Reports what was lost meanwhile. The client may repeat requests for what it does not know of until then. */
void permits_bound(struct request_context *x, struct session *s, struct instant until);

/* The next step of a permit that is asked for: it tries slots, waits in line, and waits in the queues of all slots. See ALGORITHMS.md, Semaphores. */

/* Continues the first of the permits that are due. There must be one. Call this when no notice is left, and deliver notices afterwards. */
void permit_step_next(struct request_context *x);
/* TIMER_PERMIT: its wait is over, or its client has not repeated the ACQUIRE. */
void permit_step_fired(struct request_context *x, struct permit *p);

/*
 * Permits of the previous run. Each claim of a permit has its own record, with JOURNAL_PERMIT, under the name of the mark or of the slot. The owner in it
 * consists of SEAT_OWNER, a number of the permit, the limit, the number of slots, and the owner from the client. A blank follows each number. If a record of a
 * permit is missing, its client was never told of the permit.
 *
 * The loss of a permit is one record LOST, under the name of the semaphore from the client. The owner in it consists of JOURNAL_LOSS_OWNER, the number, the
 * limit, the number of slots that it had, the slot, and the owner. A blank follows each number. This record supersedes those of the claims.
 *
 * A permit has one slot. Earlier builds wrote records of permits with several. These are skipped: RESUME has no row of them, and their keys expire at the
 * stores.
 */

/*
 * Reads a record HELD or ADOPTING of the session, with the values in it. The name has no other holder, except of the same lease. -EBADMSG: the record is not
 * valid.
 */
int permit_restore_seat(struct request_context *x, struct session *s, const struct journal_record *r, const struct prior_lease *from);
/* Reads a record FREED. False: it is not about a permit of the session. */
bool permit_restore_freed(struct request_context *x, struct session *s, const struct journal_record *r);
bool permit_restore_is_loss(const struct journal_record *r); /* a record LOST or FREED: it is about the loss of a permit */
/* Reads such a record LOST. -EBADMSG: it is not valid. */
int permit_restore_loss(struct request_context *x, struct session *s, const struct journal_record *r, enum loss why);
/* Drops the claim of a permit that another record supersedes. */
void permit_restore_drop(struct request_context *x, struct claim *c);
void permit_restore_drop_all(struct request_context *x, struct session *s); /* the session was over */
/* All records are read: complete permits are adopted from the stores, and the others are dropped. */
void permit_restore_end(struct request_context *x, struct session *s);

#endif
