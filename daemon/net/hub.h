/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all connections of a net share: the sink, the session numbers, the read buffer, spare buffers, and the lists of connections
 * that wait for something. One loop, one thread.
 */
#ifndef NET_HUB_H
#define NET_HUB_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "daemon/base/pool.h"
#include "daemon/net/net_types.h"
#include "daemon/net/pacing.h"
#include "daemon/net/shares.h"
#include "daemon/net/slots.h"

#include <sys/epoll.h>
#include <sys/queue.h>

#define HUB_READ   ((size_t)16384) /* bytes of one recv(2) */
#define HUB_SPARES 64

struct conn;
struct event;
struct ssl_ctx_st;
TAILQ_HEAD(share_list, share);
TAILQ_HEAD(handshake_list, handshake);

/* sockets.h */
#define SOCKETS_AT_ONCE 64
struct sockets {
	int epoll;
	struct event *ready;
	void (*handle)(struct conn *c, short what); /* what: EV_READ, EV_WRITE, EV_CLOSED; may free c */
	struct epoll_event reported[SOCKETS_AT_ONCE]; /* [at, n): not handled yet; a connection that is forgotten meanwhile becomes NULL */
	unsigned at, n;
	bool cut, ended; /* of these sockets: the pass was cut before all were handled; one of the handled ones had ended */
	bool late;       /* this pass has used up its time: sockets to be read wait for their turns */
	unsigned handled; /* of these sockets: how many did not have to wait for their turns */
};

/* handshakes.h */
struct handshakes {
	struct ssl_ctx_st *context; /* for new handshakes; NULL: none */
	struct handshake_list all;   /* oldest first */
	struct pacing pacing;
	unsigned n;                 /* length of all */
	struct event *deadline;     /* expires with the oldest */
	uint64_t failed;            /* not logged yet */
	struct instant quiet_until; /* no log line about a failure before this */
};

struct hub {
	struct event_base *base;
	struct net_conf conf;
	struct net_sink sink;
	struct net_counts counts;
	struct slots slots;
	struct sockets sockets;
	struct shares shares; /* of the sessions, by peer */
	LIST_HEAD(, conn) leaving; /* connections of no peer whose buffers are not empty */
	struct pool conns, secure_conns; /* secure.h */
	/* The read buffer, conf.line_max + HUB_READ bytes: kept input of a connection, then the bytes of one recv(2). */
	char *scratch;
	/* The connection whose callback is running; NULL: none, or the callback has ended that connection. */
	struct conn *current;
	size_t spoken; /* bytes sent to it since its turn began */
	struct instant turn_ends; /* if it has more than one line */
	struct conn_list dirty; /* for net_flush: connections with output, or hung up */
	struct conn_list ended; /* connections whose end the loop must report to the sink */
	struct share_list turns; /* peers whose connections wait for the loop: to be read, with kept lines, or for `sent`. The first one is next */
	struct conn_list
		closing; /* closing connections, oldest first; see closing.h */
	unsigned closing_n, refused_n; /* length of closing; how many of them were refused */
	struct event *run_turns;       /* runs through ended and turns */
	bool after_end;                /* the last turn was that of an end */
	struct event *deadline;        /* expires with the oldest of closing */
	/* Spare buffers. A connection has a buffer only while there is something in it. */
	struct buf *spare[HUB_SPARES];
	unsigned spares;
	/* Empty buffers that were large. Their memory goes back to the kernel in portions, because that takes time. */
	struct buf *waste;
	size_t wastes, waste_cap, wasted; /* how many, the size of the array, and bytes of all */
	size_t held; /* memory of the buffers of all connections, in bytes: unsent output, and kept input */
	struct handshakes handshakes;
	bool paused; /* carry.h: nothing is accepted or read, and the sink hears only of ends */
};

struct buf *hub_buf_get(struct hub *h);
void hub_buf_put(struct hub *h, struct buf *b); /* NULL is allowed */
void hub_give_back(struct hub *h);              /* once a pass of the loop: frees a portion of the memory of large buffers */
void hub_buf_release(struct hub *h);            /* spare buffers, and those that are not freed yet */

/* Every connection has a descriptor: sessions, closing ones, and handshakes. */
static inline bool hub_is_full(const struct hub *h)
{
	return h->slots.live + h->closing_n + h->handshakes.n >= h->conf.connections_max;
}

#endif
