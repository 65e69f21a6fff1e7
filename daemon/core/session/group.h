/* SPDX-License-Identifier: BSD-2-Clause */
/* A LOCKALL or LOCKANY that is not answered yet, and its claims, which an internal session owns. */
#ifndef CORE_GROUP_H
#define CORE_GROUP_H

#include "daemon/core/round/engine_data.h"
#include "daemon/core/session/request_context.h"
#include "daemon/core/session/session.h"

/*
 * The agent of a group or a permit: the session of its claims, which is in no table and has no client. What it has does not count as holds of the client.
 */

/* Of zeroed memory. principal: the session that the group or the permit is of. */
void inner_session_init(struct session *agent, struct session *principal);
/* A claim of the agent that has yet to ask, by lock_request_ask(). */
struct claim *inner_session_claim(struct engine *e, struct session *agent, struct span owner, struct remark remark, struct instant asked_at);
/* The request was repeated on other terms: they hold for what the agent has not got yet. */
void inner_session_set_terms(struct session *agent, bool renew, int64_t ttl_us, int64_t delay_us, struct remark remark);
/* Gives back what the claim has, or leaves the queue. */
void inner_session_drop(struct engine *e, struct claim *c);

/*
 * A group is a LOCKALL or a LOCKANY that is not answered yet. It asks for each of its names by an ordinary claim, a part. Parts belong to no client: their
 * session is the agent of the group, so what a group has of a name does not count as a hold of its client until the group has all that it asks for. Then the
 * claims become the client's. See ALGORITHMS.md, Groups.
 */

struct take;

enum group_state {
	GROUP_NEW,       /* it has asked for nothing */
	GROUP_TRYING,    /* it asks for one name after the other, and waits for no holder */
	GROUP_WAITING,   /* LOCKALL: it waits in the queue of one name, and has those before that. LOCKANY: in the queues of all */
	GROUP_CANCELLED, /* it is about to give back what it has, and to be answered */
};

struct part {
	char *name;
	size_t n;
	struct claim *claim; /* NULL: this name is not asked for */
	struct lock *seen;   /* what the refusal was about, kept alive; NULL: it was not refused */
	enum refusal why;    /* of the last refusal */
};

struct group {
	LIST_ENTRY(group) in_session;
	TAILQ_ENTRY(group) in_due;
	struct session *session;
	struct origin *origin; /* in whose crowd its parts count */
	struct session agent; /* of the parts' claims; in no table */
	struct timer lapse;   /* its session was resumed, and the client has not repeated the request: how long it may yet do so */
	enum group_state state;
	unsigned parts;
	unsigned next;        /* the name that is asked for; LOCKANY: while TRYING */
	struct part *part;
	char *owner;
	size_t owner_n;
	struct kept_remark remark;
	int64_t ttl_us, delay_us;
	struct instant asked_at, wait_until;
	int64_t stores_us;        /* see struct asking */
	unsigned priority;
	unsigned count;           /* count= of the request; 0: it has none */
	bool any;                 /* LOCKANY */
	bool renew, shared, patient;
	struct take *take;        /* the TAKE whose job has this lock: that is told, and no client; NULL: none */
	bool due;                 /* in request_context.groups_due */
	bool leaving;             /* its session has sent its last line: it waits for no holder any more */
	bool told;                /* its client was told why it is refused */
	bool ending;              /* its parts get nothing any more */
	bool denied;              /* CANCELLED: by new rules */
	bool not_notified;        /* its connection was lost: a repeated request takes its place */
	char tag[TAG_MAX + 1];
};

static inline struct span group_owner(const struct group *g)
{
	return (struct span){g->owner, g->owner_n};
}

static inline struct span part_name(const struct part *p)
{
	return (struct span){p->name, p->n};
}

/* The group that has the claim as a part. */
static inline struct group *group_of(const struct claim *c)
{
	return container_of(c->session, struct group, agent);
}

/* For the session and on the terms of its request, which is LOCKALL or LOCKANY. It is due. */
struct group *group_new(struct request_context *x, struct session *s);
/* For the lock of a job that a TAKE of this session was given. */
struct group *group_new_of_take(struct request_context *x, struct session *s, struct take *take, struct span name, struct span owner, int64_t ttl_us);
/* After RESUME the client repeats the request, by this one. */
void group_repeat(struct request_context *x, struct group *g);
/* It gives back what it has, and is answered, before the step ends: not now, since notices may speak of its parts. */
void group_cancel(struct request_context *x, struct group *g);
/* It is looked at before the step ends. */
void group_make_due(struct request_context *x, struct group *g);

/* The client's own hold of that name; NULL: it has none. */
struct claim *group_own(const struct request_context *x, const struct group *g, const struct part *p);
/* The client or the group holds the name, and will for a while. */
bool part_is_had(const struct request_context *x, const struct group *g, const struct part *p);
/* Asks for that name. patient: until the wait of the group is over. */
void part_ask(struct request_context *x, struct group *g, struct part *p, bool patient);
/* Gives back what it has of the name, or leaves the queue. */
void part_drop(struct request_context *x, struct part *p);
void group_drop_parts(struct request_context *x, struct group *g, const struct part *but);
/* Notes what a notice says of a part. True: nobody is to be told. */
bool group_note(struct request_context *x, const struct notice *n);
/* The request that it is of. */
static inline enum verb group_verb(const struct group *g)
{
	return g->any ? VERB_LOCKANY : VERB_LOCKALL;
}

/* The group is answered, or has no client left: gives back what it has. */
void group_free(struct request_context *x, struct group *g);

/* Its parts get nothing any more. */
void group_is_ending(struct group *g);
void group_leave_queues(struct request_context *x, struct group *g);
void group_release(struct request_context *x, struct group *g); /* the daemon ends: gives nothing back */

#endif
