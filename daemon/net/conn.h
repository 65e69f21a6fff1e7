/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One client connection. It passes complete lines to the hub's sink, and writes its output once per flush. An idle connection takes 128 bytes,
 * besides 16 for its slot.
 *
 * The peer may half-close its side and still read, or be gone. On a Unix socket POLLHUP means that the peer is gone. If no lines wait, or lines are not
 * taken, the sink gets gone(GONE_HANGUP) at once. Otherwise the sink gets `half_closed` at once, then the waiting lines, then gone; output is dropped
 * meanwhile. On TCP a FIN leads to eof after the last complete line, and an error to gone. When a peer half-closes while lines are not taken, the sink
 * gets `half_closed` at once.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "daemon/base/instant.h"
#include "daemon/net/hub.h"

#include <event2/event.h>

enum conn_state {
	CONN_OPEN,    /* lines may come */
	CONN_ENDED,   /* half-closed: the sink got eof, no input follows, replies still go out */
	CONN_DISMISSED, /* the daemon ends it: the loop is about to call gone, and then to close it; no input is taken, replies still go out */
	CONN_FAILED,  /* the connection has ended, and the loop is about to call gone; nothing is read or written */
	CONN_CLOSING, /* no session any more: unsent output goes out, input is dropped */
	CONN_LINGERING, /* all output is written and our side is shut. Closing before the peer does could lose our last line: unread input causes a reset */
};

struct conn {
	struct hub *hub;
	uint64_t session;        /* 0: no session, or no longer one */
	struct buf *rest;        /* kept input: an unfinished line, or lines that wait: reading is off, out is full or the share is used up; NULL: none */
	struct buf *out;         /* unsent output; NULL: none */
	struct instant deadline; /* CONN_CLOSING, CONN_LINGERING: when the connection is closed at the latest */
	size_t held;             /* memory of rest and out, as it was counted last */
	LIST_ENTRY(conn) of_class; /* in share.sessions_of[class], if class > 0 */
	TAILQ_ENTRY(conn) dirty;
	TAILQ_ENTRY(conn) link; /* in hub.ready or hub.closing */
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
	bool is_dirty : 1, is_ready : 1, is_refused : 1;
	bool partial : 1; /* rest is the beginning of a line, without its LF */
	bool is_tls; /* part of a struct secure_conn */
	bool stuck;  /* TLS must write before it can read, see secure.h */
};

_Static_assert(sizeof(struct conn) == 128, "an idle session is no larger than net.h says");

static inline enum net_transport conn_transport(const struct conn *c)
{
	return c->is_tls ? NET_TLS : c->is_unix ? NET_UNIX : NET_TCP;
}

struct ssl_st;

/* Takes ownership of fd, which is non-blocking, and of tls: NULL, or a handshake is done. Only from the loop: calls sink.open. */
void conn_open(struct hub *h, int fd, const struct peer *peer, struct ssl_st *tls);
void conn_send(struct conn *c, const void *bytes, size_t size);
void conn_read(struct conn *c, bool on);
void conn_await_sent(struct conn *c);
void conn_flush(struct conn *c);               /* may free c if it is closing */
void conn_ready(struct conn *c, short what);   /* from the loop: the socket has EV_READ, EV_WRITE, EV_CLOSED; may free c */
void conn_told(struct conn *c);                /* from the loop, for a connection taken off hub.ready: makes the pending callbacks */
void conn_fail(struct conn *c, enum gone how); /* for a session: the loop calls sink.gone later. Idempotent. */
void conn_dismiss(struct conn *c);             /* for a session: the loop calls sink.gone(GONE_RESTART) later, and closes it as closing.h says */
void conn_watch(struct conn *c);               /* has all reported again that there is at the socket now */
void conn_resume(struct conn *c);              /* for a session: goes on after a pause, or in its next process */

/* Between conn.c, ending.c, output.c and closing.c. */
void conn_set_state(struct conn *c, enum conn_state state, const char *why);
void conn_arm(struct conn *c);
void conn_mark_dirty(struct conn *c);
void conn_add_output(struct conn *c, const void *bytes, size_t n);
void conn_drop_output(struct conn *c);
void conn_add_input(struct conn *c, const void *bytes, size_t n); /* may fail c */
void conn_drop_input(struct conn *c);
void conn_count_held(struct conn *c); /* after its buffers have changed */
void conn_leave_share(struct conn *c);
int conn_write(struct conn *c);          /* one send(2). 0: all is written; 1: the socket is full; -errno */
bool conn_is_full(const struct conn *c); /* too much output is unsent: the next request must wait */
void conn_want_telling(struct conn *c); /* puts c on hub.ready */
void conn_broken(struct conn *c, int error); /* a write failed; may free c if it is closing */
bool conn_takes_input(const struct conn *c);
void conn_read_failed(struct conn *c, int error);
/* From the loop: calls sink.gone at once, because requests of others in the same pass may depend on it. */
void conn_end_here(struct conn *c, short events);
/*
 * Checks a connection that is not read and has an event, or whose peer has closed. A half-closed connection goes on; an error, or both sides
 * closed, is the end. True: the sink has been called, and c may be freed.
 */
bool conn_is_over(struct conn *c);
void conn_end_session(struct conn *c); /* its number becomes invalid */
void conn_free(struct conn *c); /* closes the descriptor; calls nothing */

/* The loop is about to call gone. */
static inline bool conn_is_ending(const struct conn *c)
{
	return c->state == CONN_DISMISSED || c->state == CONN_FAILED;
}

#endif
