/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to permits: the functions of the files of this folder. */
#ifndef CORE_PERMIT_H
#define CORE_PERMIT_H

#include "daemon/core/event/journal.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/session/semaphore.h"

/* What permits ask for and have: ordinary claims, one for each seat. */

/* For the session; permit_new(): on the terms of its ACQUIRE. */
struct permit *permit_add(struct request_context *x, struct session *s, struct semaphore *m);
struct permit *permit_new(struct request_context *x, struct session *s, struct semaphore *m);
/* On those of the present request: what it has not got yet is asked for on them. */
void permit_set_terms(struct request_context *x, struct permit *p);
/* Asks for it. patient: until the permit leaves the queue. */
void permit_ask_mark(struct request_context *x, struct permit *p, bool patient);
void permit_ask_slot(struct request_context *x, struct permit *p, unsigned slot, bool patient); /* for which it has not asked yet */
void permit_ask_again(struct request_context *x, struct permit *p, struct seat *seat, bool patient); /* of a slot, which it is not asking for */
bool seat_is_asked(const struct seat *seat);
bool seat_is_had(const struct request_context *x, const struct seat *seat); /* held, and its lease not over */
/* Gives back what it has of the name, or leaves the queue. */
void seat_drop(struct request_context *x, struct seat *seat);
/* One of those that it has is its slot: it gives back the others, and leaves their queues. */
void permit_keep_slot(struct request_context *x, struct permit *p);
void permit_drop_all(struct request_context *x, struct permit *p);
/* HELD, LOST. The client may rely on what it has until then: see hold_abandon(). */
void permit_abandon(struct request_context *x, struct permit *p, struct instant until);
/* TRYING, FIRST: it has, or asks for, some slot. */
bool permit_has_slot(const struct request_context *x, const struct permit *p);
bool permit_asks_slots(const struct permit *p);
struct seat *permit_seat(struct permit *p, const struct claim *c);
/* HELD: its mark or its slot, if it is lost, whatever becomes of the other. NULL: none is. */
const struct seat *permit_lost_seat(const struct permit *p);

/* Gives back what is left, as of a client that relies on nothing, and forgets the permit. Its semaphore stays. */
void permit_free(struct request_context *x, struct permit *p);

/* SUBSCRIBE, and CONTENDED about permits: whoever has one is told that others wait for permits of the semaphore. For locks see watch.h. */

enum contended_why {
	CONTENDED_NEWS,  /* the session has subscribed, or somebody has begun to wait, or says again that he waits; it is told at most every 100 ms */
	CONTENDED_FIRST, /* the session has got the permit */
};

void contended_tell(struct request_context *x, struct permit *p, enum contended_why why);
/* A request of this daemon has begun to wait. */
void contended_tell_all(struct request_context *x, const struct semaphore *m);

static inline void contended_permit(struct request_context *x, struct permit *p, enum contended_why why)
{
	if (x->engine->watched > 0)
		contended_tell(x, p, why);
}

static inline void contended_semaphore(struct request_context *x, const struct semaphore *m)
{
	if (x->engine->watched > 0)
		contended_tell_all(x, m);
}

void serve_SUBSCRIBE(struct request_context *x, struct session *s);

/* The permits of sessions: what becomes of them by themselves, and with their sessions. */

/* Notes what a notice says of a claim of a permit, or of its EXTEND. */
void permits_note(struct request_context *x, const struct notice *n);
/* One of its claims is lost, and with it the permit: the client is told. Nobody gets its slot before the client ceases to believe. */
void permit_lose(struct request_context *x, struct permit *p, enum loss why);
void permits_lose(struct request_context *x, struct session *s, enum loss why); /* all that the session has */

/* RISK or SAFE is told, if that has changed. */
void permit_note_risk(struct request_context *x, struct permit *p);
/* What others of the semaphore may do now that this one has changed: the next of the line, and those that are stalled. */
void semaphore_stir(struct request_context *x, struct semaphore *m);
/* The permit is gone, and its client needs no answer. */
void permit_end(struct request_context *x, struct permit *p);
/* Requests of that owner from before a cut, which were not repeated. */
void permits_give_up(struct request_context *x, struct session *s, struct span name, struct span owner);

/* The stores have not confirmed yet that it is held since the previous run. */
bool permit_is_adopting(const struct permit *p);
unsigned permits_open(const struct session *s); /* how many of the session are so */

/* The session ends: permits that it waits for get nothing any more. */
void permits_are_ending(struct session *s);
/* Then, waiting: they leave the queues; else they give back what they have, and are gone. sure: its client relies on nothing any more. */
void permits_end(struct request_context *x, struct session *s, bool waiting, bool sure);
/* Its connection is lost, and it goes on without. */
void permits_detach(struct request_context *x, struct session *s);
struct permit *permit_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
bool permits_wait(const struct session *s, bool patient);
unsigned permits_patient(const struct session *s);
/* The session has sent its last line. */
void permits_finish_up(struct request_context *x, struct session *s);

/* The permits of a session whose client comes back: what it hears of them by RESUME, and until when it may ask again for what it does not know of. */

/* From now on its client relies on it. Its turn came while the client was away, and would be over if it was not asked for again. */
void permit_hear(struct request_context *x, struct permit *p);
/* RESUME: `to` takes over what `from` has and waits for. */
void permits_take_over(struct session *to, struct session *from);
/* RESUME is answered, by rows from `begin` on: one for each permit, as far as there is room. Returns how many; *more counts the others. */
unsigned permits_tell_resumed(struct request_context *x, struct session *s, size_t begin, int64_t *more);
/* Behind that: what was lost meanwhile, and until when the client may ask again for what it does not know of. */
void permits_bound(struct request_context *x, struct session *s, struct instant until);

/* What a permit that is asked for does next: it tries slots, waits in line, and stands in the queues of all slots. See ALGORITHMS.md, Semaphores. */

/* Looks at the first of the permits that are due, of which there is one. Call when no notice is left, and deliver notices afterwards. */
void permit_step_next(struct request_context *x);
/* TIMER_PERMIT: its wait is over, or its client has not repeated the ACQUIRE. */
void permit_step_fired(struct request_context *x, struct permit *p);

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
