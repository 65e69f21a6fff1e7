/* SPDX-License-Identifier: BSD-2-Clause */
/* A request that may wait: what LOCKALL, LOCKANY, ACQUIRE and TAKE have in common, and the internal session that owns its claims. */
#ifndef CORE_BID_H
#define CORE_BID_H

#include "daemon/core/session/request_context.h"

/*
 * A LOCKALL, a LOCKANY, an ACQUIRE or a TAKE, from its request on until it is answered. The bid of an ACQUIRE stays in its session as long as the permit. A bid
 * is the first member of a group, a permit or a take.
 */

enum bid_due { DUE_NOT, DUE_NOW, DUE_LATER };

struct bid {
	TAILQ_ENTRY(bid) in_session, in_due;
	enum bid_kind kind;
	enum bid_due due;       /* NOW: it is looked at before the step ends. LATER: in the next step */
	struct session *session;
	struct session *agent;  /* owns its claims: see inner_session_init(). NULL: a TAKE has none of its own */
	struct origin *origin;  /* the peer for whose limits it counts, until it is answered; NULL: none */
	struct timer timer;     /* see struct group, struct permit and struct take */
	struct instant asked_at, wait_until;
	int64_t ttl_us;
	int64_t stores_us;      /* see struct asking */
	struct span owner;      /* owned */
	struct kept_remark remark;
	unsigned priority;
	unsigned count;         /* count= of the request; 0: it has none */
	bool patient;           /* wait > 0 */
	bool answered;          /* a permit: its client has it, or has lost it */
	bool withdrawn;         /* it will be answered before the step ends, and gives back what it holds */
	bool denied;            /* withdrawn: new rules deny it */
	bool reason_sent;       /* withdrawn: its client was sent the reason */
	bool leaving;           /* its session has sent its last line: it waits for nobody any longer */
	bool ending;            /* its claims are granted nothing any more */
	bool not_notified;      /* its connection was lost: the client does not know what it got, or a repeated request takes its place */
	char tag[TAG_MAX + 1];
};

static inline bool bid_is_tagged(const struct bid *b)
{
	return b->not_notified || b->tag[0] != '\0';
}

/* Adds it to the session, for so many names. It is zeroed memory. */
void bid_open(struct bid *b, enum bid_kind kind, struct session *s, unsigned names, struct span owner, struct remark remark);
/* The same on the terms of the request that is being served. */
void bid_open_request(struct request_context *x, struct bid *b, enum bid_kind kind, struct session *s, unsigned names);
/* The client repeats the request: this request takes the place of the earlier one. */
void bid_repeat(struct request_context *x, struct bid *b);
/* It was answered, and counts no longer. */
void bid_answered(struct bid *b, unsigned names);
/* Removes it from its session and frees its memory, except the struct itself. */
void bid_close(struct request_context *x, struct bid *b);

void bid_set_due(struct request_context *x, struct bid *b, enum bid_due due);
/* A group or a permit gives back what it holds, and is answered, before the step ends; not at once, because notices may refer to its claims. */
void bid_withdraw(struct request_context *x, struct bid *b);
/* Its claims are granted nothing any more. */
void bid_is_ending(struct bid *b);

/* The first bid of the session, the one after `b`, and the next of the same kind. NULL: there is none. */
struct bid *bid_first(const struct session *s);
struct bid *bid_next(const struct bid *b);
struct bid *bid_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
bool bids_wait(const struct session *s, bool patient);
unsigned bids_patient(const struct session *s); /* TAKEs do not count */
/* The session has lost its connection. */
void bid_detach(struct bid *b);
/* RESUME: moves what `from` has and waits for to `to`. */
void bids_take_over(struct session *to, struct session *from);

/*
 * The agent of a group or a permit: the internal session that owns its claims. It is in no table and has no client. What it holds does not count as holds of
 * the client.
 */

/* The agent is zeroed memory. The bid is open. */
void inner_session_init(struct session *agent, struct bid *b);
/* Creates a claim of the agent, for which lock_request_ask() has yet to be called. */
struct claim *inner_session_claim(struct engine *e, const struct bid *b, struct instant asked_at);
/* The request was repeated on other terms. They apply to what the agent has not got yet. */
void inner_session_set_terms(const struct bid *b, bool renew, int64_t delay_us);
/* Held, and its lease is not over. NULL: false. */
bool inner_session_has(const struct engine *e, const struct claim *c);
/* Gives back what the claim holds, or removes it from the queue. *c is NULL from then on; if it was before, nothing is done. */
void inner_session_drop(struct engine *e, struct claim **c);

#endif
