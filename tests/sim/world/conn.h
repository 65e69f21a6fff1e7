/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection of a client to its daemon: bytes, in order, in fragments, each way. The two ends learn of its end on their own, if ever. Connections
 * live as long as the world.
 */
#ifndef SIM_CONN_H
#define SIM_CONN_H

#include "daemon/base/buf.h"
#include "daemon/base/heap.h"
#include "daemon/base/peer.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"

#include <sys/queue.h>

#define SECRET_TEXT 33
#define OUTPUT_MAX (64 * 1024) /* bytes that a client may leave unread */

struct world;
struct sim_client;
struct sim_daemon;
struct request_sim;
TAILQ_HEAD(requests, request_sim);

enum packet_kind {
	PACKET_OPEN,
	PACKET_BYTES,
	PACKET_EOF,  /* the sender says no more */
	PACKET_SENT, /* to the daemon: most of what it sent is read */
	PACKET_GONE, /* to the daemon: see how */
	PACKET_END,  /* to the client: the connection is closed */
};

enum direction { TO_DAEMON, TO_CLIENT };

struct packet {
	struct timer timer;
	TAILQ_ENTRY(packet) in_inbox;
	struct conn *conn;
	enum packet_kind kind;
	enum direction direction;
	enum gone how;
	uint64_t life; /* TO_CLIENT: of the daemon */
	int64_t depart;
	size_t n;
	char bytes[];
};
TAILQ_HEAD(packets, packet);

/* What one owner of the session has of one name, as the lines of its daemon say. */
struct account {
	int64_t count, fence;
	struct instant ends; /* when a lease that nobody renews is over, as it was granted, by the clock of that daemon */
	const struct sim_daemon *ends_by; /* NULL: it is renewed, or was extended */
	bool open;  /* RESUME left it undecided: SAFE, LOST or a later RESUME says what became of it */
	bool vague; /* the journal was torn since: it may be gone, or be held as often as before */
};

struct conn {
	TAILQ_ENTRY(conn) in_world;
	struct world *world;
	struct sim_client *client;
	struct sim_daemon *daemon;
	uint64_t life; /* of the daemon that it was made with */
	uint64_t session;
	unsigned number;
	struct peer peer;
	struct stream to_daemon, to_client;
	bool client_open; /* the client's end */
	bool left;        /* the client has said its last line: it claims nothing any more */
	bool daemon_open; /* the daemon's end: the service knows the session */
	bool stillborn;   /* it broke before the daemon accepted it */
	bool going;       /* the daemon hears of its end in the step that runs */
	bool silent;      /* nothing passes any more */
	int64_t last[2];  /* arrival of the last packet, each way */
	int64_t stalled_until[2];
	size_t unread; /* bytes under way to the client */
	uint64_t awaited_step; /* the step since which the daemon waits until the client has read those; 0: it does not */
	/* the daemon's end */
	struct buf in;
	bool skipping, reading;
	char secret[SECRET_TEXT]; /* of a session with grace; "" */
	uint64_t took;            /* when it took its session, among all that did: the last has it */
	int64_t detached_at;      /* true time when the daemon lost this connection of it; 0: it did not */
	bool orphans[NAMES_MAX];  /* a LOCK of that name stood in line when the connection was lost, of it or of one before */
	bool taken;               /* its session was taken to another daemon: nobody hears what this one says */
	bool resumed;             /* it took over another's session */
	bool eof, parted, eof_told;                    /* it has come; the service knows that it will; it knows */
	struct requests sent;                          /* lines on their way or in the buffer, in order */
	struct requests queued;                        /* read; untagged, and behind another */
	struct requests running;                       /* begun and not answered */
	int64_t beat_us, heard_at;                     /* how often its daemon must hear a line, 0 if it need not; true time when it heard the last */
	struct account account[OWNERS_MAX][NAMES_MAX]; /* the checker's */
	/* the client's end */
	struct buf out;
	struct requests open; /* sent and not answered, as the client sees it */
};
TAILQ_HEAD(conns, conn);

struct conn *conn_open(struct sim_client *c);
void conns_release(struct world *w);
/* The client sends a line, with its LF. */
void conn_write(struct conn *c, const char *line, size_t n, struct request_sim *request);
/* The client ends its side: closes (EOF and hang-up), dies, or shuts the sending side only. */
enum leave { LEAVE_CLOSE, LEAVE_DIE, LEAVE_HALF };
void conn_leave(struct conn *c, enum leave how);
/* The daemon's end breaks, without the client's knowledge. */
void conn_cut(struct conn *c, enum gone how, int64_t at);

/* The daemon's end. */
void conn_send(struct conn *c, const char *p, size_t n, int64_t depart);
void conn_hang_up(struct conn *c, int64_t depart);
void conn_await(struct conn *c);
void conn_set_reading(struct conn *c, bool on);
void conn_daemon_died(struct conn *c);
void conn_on_packet(struct packet *p); /* to the daemon, which runs */
void packet_fired(struct packet *p);

#endif
