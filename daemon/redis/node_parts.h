/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node is, for node.c and its tests. */
#ifndef REDIS_NODE_PARTS_H
#define REDIS_NODE_PARTS_H

#include "daemon/base/backoff.h"
#include "daemon/redis/node.h"
#include "daemon/redis/socket.h"
#include "daemon/redis/redial.h"

/* What is wrong with a node that is up. */
struct node_trouble {
	enum defect defect;
	char reason[300];
};

enum node_state {
	NODE_WAITING,   /* the timer begins the next attempt */
	NODE_RESOLVING, /* waits for the sentinels, or for the resolver; then the timer limits the wait */
	NODE_DIALLING,  /* links are connecting, or in the handshake */
	NODE_UP,        /* all links are ready; the timer ends it when the server has become a replica, or looks where its name or path leads */
};

struct node {
	const struct node_conf *conf;
	unsigned index;
	char *label, *path, *host; /* path or host */
	uint16_t port;
	struct sentinel *sentinel; /* tells host and port; NULL: they stay */
	bool voted;     /* a server was up, in this process or before, and no other has taken its place since */
	char known[48]; /* the run id of the server that was up last; "": not known */
	struct endpoint home; /* … and where it was; n 0: it was not up in this process */
	struct instant home_shut; /* since when nobody listens there, as far as was tried; INSTANT_NEVER: somebody does, or it was not tried */
	bool renamed; /* the sentinels name another host or port now: whether that is another server is not known before it is resolved, or connected */
	struct instant known_at; /* until when it was, as far as is known: it answered later than that */
	bool recalled;  /* no sentinel tells where the master is: this attempt is for that server alone */
	enum node_state state;
	struct links links;
	struct subscriber *subscriber; /* NULL: none */
	struct redial *redial;         /* whether another connection would be taken */
	struct node_trouble wrong, shut; /* it may not be the server that others use; it would take no new connection */
	unsigned ready;                /* links that are ready */
	struct event *timer;
	struct backoff backoff;
	struct instant up_since;
	struct lookup *lookup;      /* under way; may outlast an attempt; NULL: none */
	struct addresses addresses; /* the last successful answer of the resolver */
	struct endpoint dialled;    /* address of this attempt, or of the last; the resolver may change `addresses` meanwhile */
	struct socket_place place;  /* … if it is a path */
	unsigned next;              /* index in addresses: which to dial */
	bool named;                 /* its host is a name, which no sentinel tells */
	bool demoted;               /* it is up, and was last seen as a replica */
	bool taken;                 /* it is up, and another server has its path: nothing is sent to it any more */
	struct instant looked_at;   /* when that was looked for */
	unsigned unknown;           /* looks in a row that found no address of its name */
	unsigned elsewhere;         /* looks for which it is still reported that its name led elsewhere */
	bool split;                 /* it is up, and its connections lead to several servers */
	bool astray;                /* it is up, and its path no longer leads to it */
	bool fresh;                 /* the addresses belong to this attempt */
	enum defect defect;
	char reason[256];
	int64_t cert_ends;          /* what its last connection that was taken has shown */
	struct upstream_failures failures;
};

void node_set_state(struct node *n, enum node_state state, const char *why);
void node_arm(struct node *n, int64_t us);
void node_fail(struct node *n, enum defect defect, const char *reason); /* closes the links, answers their calls, and waits for the next attempt */
void node_watch_name(struct node *n); /* arms the timer of a node that is up, if it has one */
void node_expect_name(struct node *n, const char *name); /* that certificates must be for */

#define NODE_SPLIT     "its connections lead to several servers, so each daemon may use another one: name each server itself"
#define LOOKS_TOLD     12           /* looks, a minute in all: so long a name is gone before it is reported, and is reported after it led elsewhere */

/* --- node_trouble.c: what is reported of a server that serves --- */

void node_on_tried(void *context, enum defect defect, const char *reason); /* of redial: whether it takes a new connection; DEFECT_NONE: it does */
void node_on_heard(void *context, enum defect defect, const char *reason); /* of its place; DEFECT_NONE: all is well */
void node_on_sentinels(void *context, enum defect defect, const char *reason); /* that connections lead to several servers is worse */
void node_tell_where(struct node *n, const char *reason); /* "": all is well with its name or path */
void node_tell_name(struct node *n);
void node_tell_path(struct node *n, const char *what); /* what is wrong with it; "": it leads to its server again */
void node_miss_name(struct node *n, enum defect defect, const char *why); /* it was not resolved */
/* Run ids, "": not known. All connections lead to one server, unless a balancer is between, or its name has several. Reported until all are made anew. */
void node_compare(struct node *n, struct span one, struct span other);

#endif
