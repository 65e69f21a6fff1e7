/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all connections of a net share: the sink, the numbers, the read buffer, spare output buffers, and the lists of those that
 * want something done. One loop, one thread.
 */
#ifndef NET_HUB_H
#define NET_HUB_H

#include "daemon/base/buf.h"
#include "daemon/base/pool.h"
#include "daemon/net/net.h"
#include "daemon/net/slots.h"

#include <sys/queue.h>

#define HUB_READ   ((size_t)16384) /* bytes of one read(2) */
#define HUB_SPARES 64

struct event;
TAILQ_HEAD(conn_list, conn);

struct hub {
	struct event_base *base;
	struct net_conf conf;
	struct net_sink sink;
	struct net_counts counts;
	struct slots slots;
	struct pool conns;
	/* Input is read to here, behind what was unfinished, and lines are told from here. conf.line_max + HUB_READ bytes. */
	char *scratch;
	/* Whose lines are being told right now. NULL as soon as that connection may be told of no more. */
	struct conn *current;
	struct conn_list dirty; /* want net_flush: there is output, or they were hung up */
	struct conn_list ready; /* want to be told of by the loop itself: lines that were read before, or their end */
	struct conn_list
		closing; /* sessions no more, oldest first: what was sent goes out, then the other end gets time to close */
	unsigned closing_n, refused_n; /* of the closing ones; those that never were a session */
	struct event *tell;            /* runs through ready */
	struct event *deadline;        /* of the oldest of closing */
	/* A connection has buffers only while something is in them; these wait for the next one that needs some. */
	struct buf *spare[HUB_SPARES];
	unsigned spares;
};

/* -ENOTSUP when the base cannot tell a hang-up early or edges (that is: not epoll), -ENOMEM. */
int hub_init(struct hub *h, struct event_base *base, const struct net_conf *conf, const struct net_sink *sink)
	__attribute__((warn_unused_result));
void hub_release(struct hub *h); /* closes every connection, tells of none */

struct buf *hub_buf_get(struct hub *h);
void hub_buf_put(struct hub *h, struct buf *b); /* NULL is left alone */

void hub_flush(struct hub *h);

#endif
