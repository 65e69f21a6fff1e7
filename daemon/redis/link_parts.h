/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a link, for link.c and its tests. */
#ifndef REDIS_LINK_PARTS_H
#define REDIS_LINK_PARTS_H

#include "daemon/redis/departure.h"
#include "daemon/redis/link.h"

enum link_state {
	LINK_CLOSED,    /* no socket */
	LINK_SHAKING,   /* connecting, or in the handshake of TLS; the timer is the connect timeout */
	LINK_HANDSHAKE, /* connecting, or in the handshake; the timer is the connect timeout */
	LINK_READY,     /* takes calls; the timer checks for stalls and silence */
	LINK_BROKEN,    /* the sink got `broken`; waits for link_close */
};

struct link {
	struct event_base *base;
	const struct link_conf *conf;
	struct link_sink sink;
	enum link_state state;
	struct stream stream;
	struct departure departure;
	int fd;             /* -1: none */
	struct ssl_st *tls; /* NULL: plain */
	const char *name;
	int64_t cert_ends; /* see link_cert_ends */
	struct event *io; /* fd can be read or, if `full`, written; NULL: it is not watched */
	struct event *timer;
	bool full;    /* the kernel did not take all of stream.out: the rest waits until the socket is writable */
	int error;    /* errno of a failed send(2); 0: none. The kernel reports it only once */
	bool suspect; /* a stall was seen; the link breaks if it lasts for LATE_REPLIES_US */
};

void link_watch_socket(struct link *l);              /* watches for input, and for writability if l->full */
void link_hand_over(struct link *l);                 /* tries to send what is in stream.out */
void link_watch(struct link *l, struct instant now); /* arms the timer of a link that is ready */
void link_hang_up(struct link *l);                   /* closes the socket, if there is one; answers no calls */

#endif
