/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An op is one question to all stores about one value: acquire, raise, renew, release, leave (UNLOCK keep=). It lives until every call that it
 * sent has been answered, so a late answer always finds it. It counts; what the count means is the engine's.
 * See ALGORITHMS.md, Rounds.
 */
#ifndef CORE_OP_H
#define CORE_OP_H

#include "daemon/core/lock.h"
#include "daemon/core/members.h"

enum op_kind {
	OP_ACQUIRE,
	OP_RAISE,   /* second round of an acquire: fence floor, at the nodes that granted only */
	OP_RENEW,
	OP_ADOPT,   /* as RENEW, with the value of the previous run where it may still stand */
	OP_RELEASE, /* repeated until every node said so, or the key has expired by itself */
	OP_WITHDRAW, /* our ticket leaves the queue; not repeated */
	OP_LEAVE,   /* as RELEASE, but the key stays for px_us without a holder, under a value of its own: what runs late does not match it */
	OP_LOOK,    /* who has it; see look.c */
};

struct op {
	TAILQ_ENTRY(op) in_releases; /* RELEASE, LEAVE: some node has not confirmed yet */
	struct admission_entry entry; /* RELEASE, WITHDRAW, LEAVE */
	enum op_kind kind;
	bool decided;         /* the round is over; later answers are evidence only */
	bool expired;         /* its time is over: what has not answered by now does not count for the decision */
	bool outstanding;
	uint32_t slot;
	struct lock *lock;    /* referenced while the op lives */
	struct lease_value value; /* WITHDRAW: the ticket; LEAVE: what the key is left with */
	char *others;         /* RELEASE, LEAVE: further values that may stand there, separated by blanks; heap, NULL: none */
	struct pending *pending; /* UNLOCK sync=yes, SHOW */
	unsigned serves;      /* RENEW: how many EXTENDs, from the head of the lock's list, it answers */
	struct nodeset asked;   /* a call was sent */
	struct nodeset open;    /* … and is not answered */
	struct nodeset yes;     /* granted, extended, freed; LOOK: nothing stands there */
	struct nodeset no;      /* certainly not there: refused, held by another, missing */
	struct nodeset busy;    /* no, because another value stands there */
	struct nodeset behind;  /* no, because an older ticket is first in the queue */
	struct nodeset alien;   /* no, because a key of another type stands there */
	struct nodeset over;    /* no, because the range of tokens would run ahead of the store's clock */
	struct nodeset later;   /* ACQUIRE: to be asked once the leading node has said yes */
	struct nodeset owed;    /* RELEASE, LEAVE: still to be confirmed; WITHDRAW: to be asked once it is admitted; ACQUIRE: left out, to be asked when there is room */
	struct nodeset put_off; /* RELEASE, LEAVE: of these, those that were too busy */
	struct nodeset unsure;  /* RELEASE, LEAVE: it was sent there before, and nobody knows whether it was carried out */
	int64_t px_us, ttl_us, delay_us;
	int64_t range;        /* ACQUIRE: tokens beyond the first that were asked for */
	int64_t fence;        /* RAISE: the token to be granted; LEAVE: 0 */
	struct instant until; /* RELEASE, LEAVE, WITHDRAW: nothing is left by then; ACQUIRE: decided by then */
	struct instant begun;
	struct instant value_since; /* RELEASE, LEAVE: no store was asked before for the values that it frees */
	struct instant sent[NODES_MAX];
	int64_t base[NODES_MAX]; /* of a yes: the fence; of a busy: PTTL of the key that stands there, ms */
	uint64_t holder[NODES_MAX]; /* of a busy: whose value stands there, as a hash; all foreign ones are one */
	struct votes votes;
	struct timer timer;   /* end of the round, or next try */
};
TAILQ_HEAD(op_list, op);

#define TICKET_US (3 * SEC) /* a place in the queue lasts so long unless refreshed */

struct op_table {
	struct core *core;
	struct members *members;
	struct op **slot;
	uint32_t slots, free_head; /* free slots are a list of indexes; see op.c */
	uint32_t *next_free;
	struct pool pool;
	unsigned live;
};

void op_table_init(struct op_table *t, struct core *core, struct members *members);
void op_table_release(struct op_table *t);

/* About the present value of the lock. */
struct op *op_new(struct op_table *t, enum op_kind kind, struct lock *l);
void op_free(struct op_table *t, struct op *op); /* no call is open */
/* The op of an answer, after the accounting: open, yes, no, busy, alien, votes. NULL: no such call. */
struct op *op_answered(struct op_table *t, const struct answer *a);
/* Until when this node may carry out what was sent to it over an earlier connection, no sooner than `since` and no later than `last`, and sets a key: what is
 * sent now may overtake it. PAST: nothing was. */
static inline struct instant op_astray_until(const struct op_table *t, unsigned node, struct instant since, struct instant last)
{
	const struct member *m = &t->members->node[node];

	return instant_before(m->up_since, since) ? INSTANT_PAST : instant_add(instant_min(last, m->up_since), m->astray_us);
}

/* When the last of these nodes was asked. */
struct instant op_sent_last(const struct op_table *t, const struct op *op, struct nodeset nodes);
/* When all that have not answered have had the time of a command. */
struct instant op_slow_at(const struct op_table *t, const struct op *op);
/* Those of them that have had it by now count as silent. */
void op_stall(struct op_table *t, const struct op *op);

/* The questions. Each notes the time before the command can have been sent. */
void op_send_acquire(struct op_table *t, struct op *op, unsigned node, int64_t proposal, struct span ticket, int64_t grace_us);
/* from: the values, separated by blanks, one of which may stand there in the place of the op's, which it becomes. */
void op_send_adopt(struct op_table *t, struct op *op, unsigned node, int64_t floor, struct span from);
/* A key that is gone is put back, if that happens before put_back; PAST: it is not. */
void op_send_extend(struct op_table *t, struct op *op, unsigned node, int64_t floor, struct instant put_back);
/* The second round of an acquire. beyond: the fence is lifted even beyond the limit. */
void op_send_raise(struct op_table *t, struct op *op, unsigned node, bool beyond);
void op_send_withdraw(struct op_table *t, struct op *op, unsigned node);
void op_send_release(struct op_table *t, struct op *op, unsigned node);
void op_send_leave(struct op_table *t, struct op *op, unsigned node);
void op_send_look(struct op_table *t, struct op *op, unsigned node);

/* The nodes that did what was asked, or said who is in the way. */
static inline struct nodeset op_told(const struct op *op)
{
	return nodeset_or(nodeset_or(op->busy, op->behind), op->yes);
}

/* Some node said that somebody else has it, or is first. */
static inline bool op_is_refused(const struct op *op)
{
	return nodeset_any(nodeset_or(op->busy, op->behind));
}

#endif
