/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a connection, for the files of this folder. See conn.h. */
#ifndef NET_CONN_PARTS_H
#define NET_CONN_PARTS_H

#include "daemon/base/instant.h"
#include "daemon/net/hub.h"

#include <event2/event.h>

enum conn_state {
	CONN_OPEN,    /* lines may come */
	CONN_ENDED,   /* half-closed: the sink got eof, no input follows, replies are still written */
	CONN_DISMISSED, /* the daemon ends it: the loop will call gone, and then close it; no input is taken, replies are still written */
	CONN_FAILED,  /* the connection has ended, and the loop will call gone; nothing is read or written */
	CONN_CLOSING, /* no longer a session: unsent output is written, input is dropped */
	CONN_LINGERING, /* all output is written, our side is shut. To close before the peer does could lose our last line: unread input causes a reset */
};

struct conn {
	struct hub *hub;
	uint64_t session;        /* 0: no session, or no longer one */
	struct buf *rest;        /* kept input: an unfinished line, or lines that wait as reading is off, out is full or the share is used up; NULL: none */
	struct buf *out;         /* unsent output; NULL: none */
	struct instant deadline; /* CONN_CLOSING, CONN_LINGERING: the latest time to close the connection */
	size_t held;             /* memory of rest and out when it was last counted */
	LIST_ENTRY(conn) of_class; /* in share.sessions_of[class], if class > 0 */
	TAILQ_ENTRY(conn) dirty;
	TAILQ_ENTRY(conn) link; /* in hub.ended, share.waiting or hub.closing */
	struct share *share; /* of its peer; NULL: no session, or no longer one */
	int fd;
	short watched;           /* sockets.h: EV_…; 0: not watched */
	unsigned char state, fate, class; /* enum conn_state; CONN_FAILED: enum gone; held.c */
	bool is_unix, reading, skipping /* a line that is too long */;
	bool ended;   /* the peer has half-closed its side */
	bool half_closed;  /* the sink got `half_closed` */
	bool mute;    /* the peer is gone: its earlier lines are still passed on, output is dropped */
	bool awaits;  /* the sink wants `sent` */
	bool blocked; /* the socket is full: waits until it is writable, net_flush skips it */
	bool queued; /* its share of this pass is used up; the lines in rest wait for the next one */
	bool is_dirty : 1, is_ready : 1 /* in hub.ended or share.waiting */, is_refused : 1;
	bool unread : 1; /* to be read at its turn … */
	bool parted : 1; /* … since its peer has shut a side */
	bool partial : 1; /* rest is the beginning of a line, without its LF */
	bool is_tls; /* part of a struct secure_conn */
	bool stuck;  /* TLS must write before it can read, see secure.h */
};

_Static_assert(sizeof(struct conn) == 128, "an idle session is no larger than net.h says");

static inline enum net_transport conn_transport(const struct conn *c)
{
	return c->is_tls ? NET_TLS : c->is_unix ? NET_UNIX : NET_TCP;
}

/* The loop will call gone. */
static inline bool conn_is_ending(const struct conn *c)
{
	return c->state == CONN_DISMISSED || c->state == CONN_FAILED;
}

/*
 * Whether input must wait until the socket is writable: TLS must answer first, or a record is half sent. If OpenSSL read a request for new keys in between, it
 * would mix its answer with that record, and fail.
 */
static inline bool conn_must_write(const struct conn *c)
{
	return c->is_tls && (c->stuck || c->blocked);
}

/* Too much output is unsent: the next request must wait. */
static inline bool conn_is_full(const struct conn *c)
{
	size_t mark = c->hub->conf.output_max / 4;

	return c->out && buf_length(c->out) > (mark < NET_OUTPUT_MARK ? mark : NET_OUTPUT_MARK);
}

static inline bool conn_wants_lines(const struct conn *c)
{
	return c->reading && !conn_is_full(c);
}

static inline bool conn_takes_input(const struct conn *c)
{
	if (c->state >= CONN_CLOSING)
		return !c->ended;
	return c->state == CONN_OPEN && conn_wants_lines(c) && !conn_must_write(c);
}

#endif
