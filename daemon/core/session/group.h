/* SPDX-License-Identifier: BSD-2-Clause */
/* A LOCKALL or LOCKANY that is not answered yet, and its claims, which an internal session owns. */
#ifndef CORE_GROUP_H
#define CORE_GROUP_H

#include "daemon/core/session/bid.h"

/*
 * A group is a LOCKALL or a LOCKANY that is not answered yet. It asks for each of its names by an ordinary claim, a part. The claims belong to the agent of the
 * group, so they do not count as holds of the client. When the group has all that it asks for, they become the client's. See ALGORITHMS.md, Groups.
 */

struct take;

enum group_state {
	GROUP_NEW,       /* it has not asked for anything yet */
	GROUP_TRYING,    /* it asks for one name after the other, and does not wait for any holder */
	GROUP_WAITING,   /* LOCKALL: it waits in the queue of one name, and holds those before that name. LOCKANY: it waits in the queues of all */
};

struct part {
	struct span name;    /* owned */
	struct claim *claim; /* NULL: the group does not ask for this name */
	struct lock *seen;   /* the lock that was refused, kept alive; NULL: it was not refused */
	enum refusal why;    /* of the last refusal */
};

struct group {
	struct bid bid;       /* its timer: after RESUME, how long the client may still repeat the request */
	struct session agent; /* owns the claims of the parts; in no table */
	enum group_state state;
	unsigned parts;
	unsigned next;        /* the index of the name that is asked for; LOCKANY: in TRYING */
	struct part *part;
	int64_t delay_us;
	bool any;                 /* LOCKANY */
	bool renew, shared;
	struct take *take;        /* the TAKE whose job has this lock: it gets the answer, and no client does; NULL: none */
};

/* NULL: NULL. */
static inline struct group *group_of_bid(struct bid *b)
{
	return b ? container_of(b, struct group, bid) : NULL;
}

#define GROUPS_FOREACH(g, s) \
	for ((g) = group_of_bid(TAILQ_FIRST(&(s)->bids[BID_GROUP])); g; (g) = group_of_bid(TAILQ_NEXT(&(g)->bid, in_session)))

/* Returns the group of a claim that is a part. */
static inline struct group *group_of(const struct claim *c)
{
	return container_of(c->session, struct group, agent);
}

/* Creates a group for the session, on the terms of its request, which is LOCKALL or LOCKANY. It is due. */
struct group *group_new(struct request_context *x, struct session *s);
/* Creates a group for the lock of a job that a TAKE of this session was given. */
struct group *group_new_of_take(struct request_context *x, struct session *s, struct take *take, struct span name, struct span owner, int64_t ttl_us);
/* The client repeats the request after RESUME: this request takes the place of the earlier one. */
void group_repeat(struct request_context *x, struct group *g);

/* Returns the client's own hold of that name; NULL: it has none. */
struct claim *group_own(const struct request_context *x, const struct group *g, const struct part *p);
/* The client or the group holds the name, and will for a while. */
bool part_is_had(const struct request_context *x, const struct group *g, const struct part *p);
/* Asks for that name. patient: waits for as long as the group does. */
void part_ask(struct request_context *x, struct group *g, struct part *p, bool patient);
void group_drop_parts(struct request_context *x, struct group *g, const struct part *but);
/* Notes what a notice says about a part. True: nothing is to be sent. */
bool group_on_notice(struct request_context *x, const struct notice *n);
/* Returns LOCKANY or LOCKALL: the request of the group. */
static inline enum verb group_verb(const struct group *g)
{
	return g->any ? VERB_LOCKANY : VERB_LOCKALL;
}

/* The group is answered, or has no client left: it gives back what it holds. */
void group_free(struct request_context *x, struct group *g);

void group_leave_queues(struct request_context *x, struct group *g);
void group_release(struct request_context *x, struct group *g); /* the daemon ends: frees the memory, and gives nothing back */

#endif
