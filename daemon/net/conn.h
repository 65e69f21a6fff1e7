/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One client connection: bytes in, lines told to the hub's sink; bytes sent, written once per flush. 224 bytes while it is silent,
 * besides 16 for its slot and what libevent keeps for a descriptor.
 *
 * The other end may close its side and read on (EOF), or be gone. On a Unix socket the kernel says which: POLLHUP is told as
 * GONE_HANGUP, at once when there are no lines, or none are taken; else parting is told at once, then those that were said before, then the
 * end, and nothing is sent any more. On TCP a FIN is EOF after the last complete line, and an error is the end. A side that is closed while lines
 * wait to be told is told at once as parting.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "daemon/base/instant.h"
#include "daemon/net/hub.h"

#include <event2/event.h>
#include <event2/event_struct.h>

enum conn_state {
	CONN_OPEN,    /* lines may come */
	CONN_ENDED,   /* EOF was told: nothing comes any more, replies still go out */
	CONN_FAILED,  /* it is over, and why is about to be told by the loop; nothing moves */
	CONN_CLOSING, /* no session any more: what was sent goes out, what comes in is dropped */
	CONN_LINGERING, /* all has gone out, our side is shut; waits for the other to close, or a late byte would cost it our last line */
};

struct conn {
	struct event event;
	struct hub *hub;
	uint64_t session;        /* 0: none, or none any more */
	struct buf *rest;        /* an unfinished line, or lines not told because reading is off or out is full; NULL: nothing */
	struct buf *out;         /* unsent; NULL: nothing */
	struct instant deadline; /* CONN_CLOSING, CONN_LINGERING: when it is closed at the latest */
	TAILQ_ENTRY(conn) dirty;
	TAILQ_ENTRY(conn) link; /* of hub.ready or hub.closing */
	int fd;
	unsigned char state, fate; /* enum conn_state; CONN_FAILED: enum gone */
	bool is_unix, reading, skipping /* a line that is too long */;
	bool ended;   /* the other end closed its side */
	bool parted;  /* parting was told */
	bool mute;    /* the other end is gone, and what it said before is not told to the end; what is sent to it is dropped */
	bool awaits;  /* sent is wanted */
	bool blocked; /* the socket takes no more: waits to be writable, net_flush leaves it alone */
	bool queued; /* has said much, and its turn is over: rest is told when it comes again */
	bool is_dirty, is_ready, is_refused;
};

/* Takes fd, non-blocking. Only from the loop: tells sink.open. */
void conn_open(struct hub *h, int fd, const struct peer *peer);
void conn_send(struct conn *c, const void *bytes, size_t size);
void conn_read(struct conn *c, bool on);
void conn_await_sent(struct conn *c);
void conn_flush(struct conn *c);               /* may free it when it is closing */
void conn_told(struct conn *c);                /* from the loop: tells what it has been on hub.ready for */
void conn_fail(struct conn *c, enum gone how); /* of a session: told later, by the loop. Idempotent. */

/* Between conn.c, ending.c, output.c and closing.c. */
void conn_set_state(struct conn *c, enum conn_state state, const char *why);
void conn_arm(struct conn *c);
void conn_mark_dirty(struct conn *c);
int conn_write(struct conn *c);          /* once. 0: all is out; 1: the socket is full; -errno */
bool conn_is_full(const struct conn *c); /* so much is unsent that the next request must wait */
void conn_want_telling(struct conn *c);
void conn_broken(struct conn *c, int error); /* may free it when it is closing */
bool conn_takes_input(const struct conn *c);
void conn_read_failed(struct conn *c, int error);
/* From the loop, and told at once: what others say in the same pass may depend on it. */
void conn_end_here(struct conn *c, short events);
/*
 * Something has happened to a connection that is not read, or its other end has closed. A side that is closed is not the end; an error, or both
 * sides closed, is. True: it has been told, and c may be gone.
 */
bool conn_is_over(struct conn *c);
struct conn *conn_new(struct hub *h, int fd);
void conn_free(struct conn *c); /* closes; tells nothing */

#endif
