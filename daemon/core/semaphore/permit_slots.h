/* SPDX-License-Identifier: BSD-2-Clause */
/* What permits ask for and have: ordinary claims, one for each seat. */
#ifndef CORE_PERMIT_SLOTS_H
#define CORE_PERMIT_SLOTS_H

#include "daemon/core/session/semaphore.h"

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
void permit_drop_asked(struct request_context *x, struct permit *p); /* it leaves all queues */
/* One of those that it has is its slot: it gives back the others, and leaves their queues. */
void permit_keep_slot(struct request_context *x, struct permit *p);
void permit_drop_all(struct request_context *x, struct permit *p);
/* HELD, LOST. The client may rely on what it has until then: see hold_abandon(). */
void permit_abandon(struct request_context *x, struct permit *p, struct instant until);
/* What it has is lost. The lost claims stay until its client acknowledges that; a mark that is not lost is left. */
void permit_lose_seats(struct request_context *x, struct permit *p, enum loss why);
/* TRYING, FIRST: it has, or asks for, some slot. */
bool permit_has_slot(const struct request_context *x, const struct permit *p);
bool permit_asks_slots(const struct permit *p);
struct seat *permit_seat(struct permit *p, const struct claim *c);
/* HELD: its mark or its slot, if it is lost, whatever becomes of the other. NULL: none is. */
const struct seat *permit_lost_seat(const struct permit *p);

/* Gives back what is left, as of a client that relies on nothing, and forgets the permit. Its semaphore stays. */
void permit_free(struct request_context *x, struct permit *p);

#endif
