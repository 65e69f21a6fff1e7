/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sessions must be told, in order. The files that decide add notices; deliver.c takes them out when the step's decisions are made, and adds none. A
 * notice keeps its lock, its claim and its pending alive until it is delivered.
 */
#ifndef CORE_NOTICES_H
#define CORE_NOTICES_H

#include "daemon/core/lock/lock.h"

enum notice_kind {
	NOTICE_GRANTED,   /* claim: the LOCK that asked, now the lock's holder */
	NOTICE_REENTERED, /* claim was folded into the lock's holder; freed on delivery */
	NOTICE_REFUSED,   /* claim is out of the lock; freed on delivery */
	NOTICE_FORGOTTEN, /* claim was a loss whose name is taken anew, or a hold that is over and that nobody was told of; freed on delivery */
	NOTICE_LOST,      /* claim is among the losses */
	NOTICE_ADOPTED,   /* claim: it holds what it held in the previous run */
	NOTICE_LENGTHENS, /* claim: the stores are asked for a longer lease than was promised to it so far */
	NOTICE_WAITING,   /* claim did not get the name at once, and stays in the queue */
	NOTICE_WANTED,    /* claim: another daemon waits for what it holds */
	NOTICE_RISK,
	NOTICE_SAFE,
	NOTICE_EXTENDED,  /* pending; freed on delivery */
	NOTICE_RELEASED,  /* pending; likewise */
	NOTICE_SEEN,      /* pending; likewise */
};

enum refusal {
	NOT_REFUSED,
	REFUSED_BUSY,
	REFUSED_TIMEOUT,
	REFUSED_QUORUM,
	REFUSED_NOT_ADMITTED, /* the stores were busy: it was not asked for, or not given back, in time */
	REFUSED_NOT_EXTENDED, /* EXTEND: the same; its lease goes on */
	REFUSED_KIND,
	REFUSED_IN_USE, /* the name is in use as another kind, lock or semaphore, or as a semaphore of another limit */
	REFUSED_AND_TOLD, /* LOCK: its client was told why */
	REFUSED_CANCELLED,
	REFUSED_DRAINING,
	REFUSED_DENIED, /* the rules were read again, and do not allow it any more */
	REFUSED_CROWD, /* LOCK: too many wait, or hold something with others */
	REFUSED_SLOTS, /* ACQUIRE: its session is the first in line for as many slots as one may be */
	REFUSED_COUNT, /* LOCK: this owner holds it as often as one may */
	REFUSED_SHARED, /* LOCK: its owner holds the name shared, and asks for it alone */
	REFUSED_LOST, /* EXTEND, UNLOCK sync=yes: the stores say that it was not ours any more */
};

struct notice {
	enum notice_kind kind;
	enum refusal refusal;
	struct claim *claim;
	struct pending *pending;
	unsigned count; /* GRANTED, REENTERED: how often it was held then */
};

struct notices {
	struct lock_table *table;
	struct notice *item;
	size_t count, cap;
};

void notices_init(struct notices *n, struct lock_table *table);
void notices_release(struct notices *n);
/* About a claim, or about a pending. */
void notices_add(struct notices *n, enum notice_kind kind, struct claim *c, struct pending *p, enum refusal why);
/* The notice was told: frees its claim or its pending, if its kind says so, and its lock if nothing else needs that. */
void notices_delivered(struct notices *n, const struct notice *told);
/* Answers so many of the EXTENDs that wait for a renewal of this lease, from the head of its list. */
void notices_extended(struct notices *n, struct lease *x, unsigned count, enum refusal why);

#endif
