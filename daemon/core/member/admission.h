/* SPDX-License-Identifier: BSD-2-Clause */
/* How many unanswered calls a store may have, who may begin a round now, and who is next. */
#ifndef CORE_ADMISSION_H
#define CORE_ADMISSION_H

#include "daemon/base/heap.h"
#include "daemon/base/instant.h"
#include "daemon/core/event/origin.h"

#include <stdbool.h>
#include <sys/queue.h>

/*
 * The window of a store: how many unanswered calls it may have. A store serves one call after the other, so calls that are sent faster only wait. If calls
 * wait longer than the timeout, rounds fail, are released and begin again, and this adds more load than there was before. So the window is halved when calls
 * begin to wait; a small window only when a call takes as long as the timeout. It grows slowly while calls do not wait and the window is used. A value
 * machine.
 * Source: additive increase, multiplicative decrease (Chiu, Jain 1989), on delay rather than loss (Brakmo, Peterson 1995); RFC 7661.
 * See ALGORITHMS.md, Admission.
 */

struct flow {
	unsigned open;         /* calls without an answer */
	unsigned window, most; /* the window; its upper bound */
	unsigned credit;       /* answers towards the next growth */
	int64_t least_us;      /* shortest time of an answer; INT64_MAX: unknown */
	struct instant answered_at; /* time of the last answer, or of a call that was sent when none was open */
	struct instant halved;
};

/* A new connection. most 0: the default. */
void flow_begin(struct flow *f, unsigned most);
void flow_sent(struct flow *f, struct instant now);
/* executed: the call was carried out, so the time since it was sent shows how busy the store is. */
void flow_answered(struct flow *f, struct instant sent, struct instant now, bool executed, int64_t timeout_us);

/* Whether a round may begin. */
static inline bool flow_has_room(const struct flow *f)
{
	return f->open < f->window;
}

/* Whether a round that begins must leave this store out; the others can decide without it. */
static inline bool flow_is_overdrawn(const struct flow *f)
{
	return f->open >= 2 * f->window;
}

/* Calls are open, and no answer has come for the timeout of a command. */
static inline bool flow_is_stuck(const struct flow *f, struct instant now, int64_t timeout_us)
{
	return f->open > 0 && instant_diff(now, f->answered_at) >= timeout_us;
}

/*
 * Admission: who may begin a round now, given the room in the windows of the stores. A value machine: it knows entries and room, no lock and no store.
 *
 * Renewals and adoptions alternate with the rest, so neither keeps the other waiting for ever. A lease whose first half is over goes before the rest, so a
 * crowd of requests costs nobody a lease. Leases are ordered by the end of their first half. So a crowd of long leases that are extended over and over costs
 * nobody a short one. A key that is to be left (UNLOCK keep=) goes before all leases: it may end any moment, and one such call replaces many renewals. Two
 * releases go before one round that asks, so the end of sessions that held much delays nobody for long. A name with a waiting release is not asked for before
 * the release was sent. Among those who ask, peers take turns.
 * See ALGORITHMS.md, Admission.
 */

enum room {
	ROOM_NONE,
	ROOM_FOR_RELEASES, /* releases only: a round would wait for stores that may recover in a moment */
	ROOM_FOR_ALL,
};

enum admission_class {
	ADMISSION_KEEP,  /* a renewal, or an adoption: ordered by when half of the lease is over */
	ADMISSION_LEAVE, /* a key that is to be left: before all of those */
	ADMISSION_GIVE_BACK,
	ADMISSION_ASK,
};

/* What may wait for admission. `owner` tells the engine which struct the entry is embedded in (enum admission_owner). */
struct admission_entry {
	union {
		TAILQ_ENTRY(admission_entry) link; /* GIVE_BACK */
		struct turn turn;                  /* ASK */
		struct timer urgent;               /* KEEP, LEAVE */
	};
	uint8_t class, owner;
	bool waits;  /* until it is admitted, or leaves */
	bool parked; /* ASK: it waits, but in no line */
};
TAILQ_HEAD(admission_entries, admission_entry);

struct admission {
	struct heap keep;
	struct admission_entries give_back;
	struct turns ask;
	bool asks_later; /* no ASK begins: releases are yet to be sent to a store that is back, and one of them may be for the same name */
	bool odd; /* flips with each choice; when set, a lease is chosen first */
	unsigned given_back; /* releases since the last ASK that was chosen while releases waited */
};

void admission_init(struct admission *a);
void admission_release(struct admission *a);

/* Whether the entry, which does not wait, may begin now. */
bool admission_ask(const struct admission *a, const struct admission_entry *x, enum room room);
/* It waits. urgent_at: KEEP, when half of its lease is over. whose: ASK, the peer that it is for; NULL: not known. */
void admission_queue(struct admission *a, struct admission_entry *x, struct instant urgent_at, struct origin *whose);
/* Takes out the next entry that may begin; NULL: none. Each call counts as an admission: repeat it until it returns NULL. */
struct admission_entry *admission_next(struct admission *a, enum room room, struct instant now);
/* An ASK that was taken out keeps waiting, in no line: until admission_leave() or admission_queue(). */
void admission_park(struct admission_entry *x);
/* The entry need not begin any more: takes it out if it waits. */
void admission_leave(struct admission *a, struct admission_entry *x);

/* Nobody waits. */
static inline bool admission_is_idle(const struct admission *a)
{
	return a->keep.count == 0 && TAILQ_EMPTY(&a->give_back) && turns_none(&a->ask);
}

#endif
