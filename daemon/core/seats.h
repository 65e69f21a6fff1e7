/* SPDX-License-Identifier: BSD-2-Clause */
/* What permits ask for and have: ordinary claims, one for each seat. */
#ifndef CORE_SEATS_H
#define CORE_SEATS_H

#include "daemon/core/semaphore.h"

/* For the session; permit_new(): on the terms of its ACQUIRE. */
struct permit *permit_add(struct commander *x, struct session *s, struct semaphore *m, unsigned weight);
struct permit *permit_new(struct commander *x, struct session *s, struct semaphore *m, unsigned weight);
/* On those of the present request: what it has not got yet is asked for on them. */
void permit_set_terms(struct commander *x, struct permit *p);
/* The seat of that slot; made if there is none. */
struct seat *permit_seat_of(struct permit *p, unsigned slot);
/* Asks for it. patient: until the permit leaves the queue. */
void permit_ask_mark(struct commander *x, struct permit *p, bool patient);
void permit_ask_gate(struct commander *x, struct permit *p);
void permit_ask_slot(struct commander *x, struct permit *p, unsigned slot, bool patient);
void permit_ask_new_slot(struct commander *x, struct permit *p, unsigned slot); /* patient; the permit has no seat of it */
bool seat_is_asked(const struct seat *seat);
bool seat_is_had(const struct commander *x, const struct seat *seat); /* held, and its lease not over */
/* Gives back what it has of the name, or leaves the queue. */
void seat_drop(struct commander *x, struct seat *seat);
void permit_drop_asked(struct commander *x, struct permit *p); /* it leaves all queues */
/* First those that wait: what is given back must not be granted to a permit that is about to leave. keep: so many that it has stay. */
void permit_drop_slots(struct commander *x, struct permit *p, unsigned keep);
void permit_drop_all(struct commander *x, struct permit *p);
/* The client may believe in what it has until then: see hold_abandon(). */
void permit_abandon(struct commander *x, struct permit *p, struct instant until);
/* What it has is lost. The lost claims stay until its client acknowledges that; a mark that is not lost is left. */
void permit_lose_seats(struct commander *x, struct permit *p, enum loss why);
unsigned permit_slots_had(const struct commander *x, const struct permit *p);
unsigned permit_slots_asked(const struct permit *p);
struct seat *permit_seat(struct permit *p, const struct claim *c);
/* HELD: its mark, or one of its slots, that is lost, whatever becomes of the others. NULL: none is. */
const struct seat *permit_lost_seat(const struct permit *p);
bool permit_has_slot(const struct permit *p, unsigned slot);

/* Gives back what is left, as of a client that believes in nothing, and forgets the permit. Its semaphore stays. */
void permit_free(struct commander *x, struct permit *p);

#endif
