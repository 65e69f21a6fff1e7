/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a node, for node.c and node_trouble.c. */
#ifndef REDIS_NODE_PARTS_H
#define REDIS_NODE_PARTS_H

#include "daemon/base/backoff.h"
#include "daemon/redis/node.h"
#include "daemon/redis/socket.h"
#include "daemon/redis/redial.h"

/* A problem of a node that is up. */
struct node_trouble {
	enum defect defect;
	char reason[300];
};

enum node_state {
	NODE_WAITING,   /* the timer begins the next attempt */
	NODE_RESOLVING, /* waits for the sentinels, or for the resolver; then the timer limits the wait */
	NODE_DIALLING,  /* links are connecting, or in the handshake */
	NODE_UP,        /* all links are ready; the timer ends it when the server has become a replica, or checks its name or path */
};

struct node {
	const struct node_conf *conf;
	unsigned index;
	char *label, *path, *host; /* path or host */
	uint16_t port;
	struct sentinel *sentinel; /* names host and port; NULL: they are fixed */
	bool voted;     /* a server was up, in this process or before, and no other has replaced it since */
	char known[48]; /* the run id of the last server that was up; "": not known */
	struct endpoint home; /* … and its address; n 0: it was not up in this process */
	struct instant home_shut; /* since when nobody listens there, as far as was tried; INSTANT_NEVER: somebody does, or it was not tried */
	bool renamed; /* the sentinels now name another host or port; whether that is another server is unknown until it is resolved, or connected */
	struct instant known_at; /* the time of its last known answer; it may have answered later */
	bool known_only;  /* the sentinels name no master: this attempt may only reach the known server */
	enum node_state state;
	struct links links;
	struct subscriber *subscriber; /* NULL: none */
	struct redial *redial;         /* tries whether another connection would be accepted */
	struct node_trouble wrong, shut; /* wrong: it may not be the server that others use; shut: it accepts no new connection */
	unsigned ready;                /* links that are ready */
	struct event *timer;
	struct backoff backoff;
	struct instant up_since;
	struct lookup *lookup;      /* under way; may outlive an attempt; NULL: none */
	struct addresses addresses; /* the last successful answer of the resolver */
	struct endpoint dialled;    /* address of this attempt, or of the last one; the resolver may change `addresses` meanwhile */
	struct socket_place place;  /* … if it is a path */
	unsigned next;              /* index in addresses: the next to dial */
	bool named;                 /* its host is a name that no sentinel gives */
	bool demoted;               /* it is up, and was a replica when last seen */
	bool taken;                 /* it is up, and another server has its path: nothing more is sent to it */
	struct instant looked_at;   /* when the path was last checked for that */
	unsigned unknown;           /* checks in a row that found no address of its name */
	unsigned elsewhere;         /* checks during which it is still reported that its name led elsewhere */
	bool split;                 /* it is up, and its connections lead to several servers */
	bool astray;                /* it is up, and its path no longer leads to it */
	bool fresh;                 /* the addresses belong to this attempt */
	enum defect defect;
	char reason[256];
	int64_t cert_ends;          /* of the last connection that was accepted */
	struct upstream_failures failures;
};

#define NODE_SPLIT     "its connections lead to several servers, so each daemon may use another one: name each server itself"
#define LOOKS_REPORTED     12           /* checks, a minute in all: a name is missing for that long before a report, and a report lasts for that long */

/* --- node_trouble.c: what is reported of a server that serves --- */

void node_on_tried(void *context, enum defect defect, const char *reason); /* of redial: whether it accepts a new connection; DEFECT_NONE: it does */
void node_on_sentinels(void *context, enum defect defect, const char *reason); /* a report of the sentinels; a split is worse, and reported instead */
void node_report_name(struct node *n);
void node_report_path(struct node *n, const char *what); /* what is wrong with the path; "": it leads to the server again */
void node_miss_name(struct node *n, enum defect defect, const char *why); /* its name was not resolved */
/* Compares run ids; "": not known. All connections lead to one server, unless there is a balancer, or the name has several servers. A split is reported until
 * all connections are made anew. */
void node_compare(struct node *n, struct span one, struct span other);

#endif
