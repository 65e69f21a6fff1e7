/* SPDX-License-Identifier: BSD-2-Clause */
/* The permits of sessions: what becomes of them by themselves, and with their sessions. */
#ifndef CORE_PERMITS_H
#define CORE_PERMITS_H

#include "daemon/core/semaphore/contended.h"
#include "daemon/core/semaphore/permit_slots.h"

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

#endif
