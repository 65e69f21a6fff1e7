/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection of a client to its daemon: bytes each way, in order, in fragments. Each end learns of the end of the connection on its own, if ever. Connections
 * are kept as long as the world.
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
#define NEST_NAMES 4 /* n0 …; with permits n0 and n1 are semaphores */
#define OUTPUT_MAX (64 * 1024) /* bytes that a client may leave unread */

struct world;
struct sim_client;
struct sim_daemon;
struct request_sim;
TAILQ_HEAD(requests, request_sim);

enum packet_kind {
	PACKET_OPEN,
	PACKET_BYTES,
	PACKET_EOF,  /* the sender sends no more */
	PACKET_SENT, /* to the daemon: the client has read most of the output */
	PACKET_GONE, /* to the daemon: the connection is gone, see how */
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
	uint64_t run; /* TO_CLIENT: the run of the daemon */
	int64_t depart;
	size_t n;
	char bytes[];
};
TAILQ_HEAD(packets, packet);

/* What one owner of the session holds of one name, as the lines of its daemon say. */
struct account {
	int64_t count, fence;
	struct instant ends;              /* when a lease without renewal ends, by the clock of `ends_by` */
	struct instant most;              /* … and at the latest */
	const struct sim_daemon *ends_by; /* NULL: the lease is renewed, or was extended */
	bool open;                        /* RESUME left it undecided: SAFE, LOST or a later RESUME decides it */
	bool vague;                       /* the journal was torn since: it may be gone, or held as often as before */
	int64_t owed;                     /* RESUME shows that the session has lost this grant: LOST is told behind the OK; 0: none */
};

#define READ_NAMES 4 /* the first READ_FEW of them in worlds without groups */
#define READ_FEW   2
#define READERS_WATCHED 40 /* more than hold a name at a time */

struct watched_reads {
	unsigned count;
	struct watched_read {
		int64_t session, fence;
		bool shared;
	} hold[READERS_WATCHED];
};

/* What the session has of the names n0 …, locks or permits, as the lines of its daemon say: see check/nests.c. */
struct nesting {
	bool holds[NEST_NAMES]; /* it was told so, and has not asked to release it */
	bool gives[NEST_NAMES]; /* it may hold it: its UNLOCK is not answered, or it does not wait for it, or its wait lost its connection */
	int64_t waits;          /* one more than the number of the name that it waits for; 0: none */
	uint64_t begun;         /* the step since which it waits … */
	int64_t since;          /* … and the true time */
	int64_t held_since[NEST_NAMES];
	int64_t over_at;        /* true time when its connection ended; 0: it stands */
	bool stuck;             /* in the last look: it certainly waits for others that certainly are stuck, too … */
	bool reached;           /* … and one that was followed there */
};

struct conn {
	TAILQ_ENTRY(conn) in_world;
	struct world *world;
	struct sim_client *client;
	struct sim_daemon *daemon;
	uint64_t run; /* the run of the daemon that it was made with */
	uint64_t session;
	unsigned number;
	struct peer peer;
	struct stream to_daemon, to_client;
	bool client_open; /* the client's end is open */
	bool left;        /* the client has sent its last line: it claims nothing any more */
	bool daemon_open; /* the daemon's end is open: the service knows the session */
	bool stillborn;   /* the connection broke before the daemon accepted it */
	bool going;       /* the daemon learns of its end in the running step */
	bool silent;      /* no packet arrives any more */
	int64_t last[2];  /* true time of the last packet's arrival, each way */
	int64_t stalled_until[2];
	size_t unread; /* bytes on their way to the client */
	uint64_t awaited_step; /* the step since which the daemon waits for the client to read; 0: it does not wait */
	/* the daemon's end */
	struct buf in;
	bool skipping, reading;
	struct nesting nest;
	int64_t read_count[READ_NAMES];                /* how often its session holds r0 …, as far as its lines say */
	bool read_alone[READ_NAMES];                   /* and alone */
	struct {
		int64_t fence;                         /* 0: not known, or at risk */
		struct instant end;                    /* by the clock of its daemon */
	} job_lock[READ_NAMES];                        /* until when it was promised r0 … for a job */
	char secret[SECRET_TEXT];                      /* the secret of a session with grace; "" */
	int64_t watched[NAMES_MAX];                    /* the last grant that WATCH told of; 0: none, or its end as well */
	struct watched_reads watched_reads[READ_NAMES]; /* who holds r0 …, as far as WATCH told */
	struct {
		const struct sim_daemon *by; /* NULL: it was not */
		uint64_t run;
		int64_t at;
		char secret[SECRET_TEXT];
	} killed; /* its session */
	int64_t serial;                                /* the number of its session, as HELLO or RESUME told it; 0: not known */
	uint64_t serial_step;                          /* the step in which it was told */
	uint64_t took;                                 /* order in which connections took sessions: the last one has the session */
	int64_t detached_at;                           /* true time when its session lost this connection; 0: it did not */
	int64_t detached_run_us;                       /* the same, as host_run_us() of the daemon's host */
	bool crowded_out;                              /* limits.detached may have ended its session, then or later */
	bool unlocking;                                /* an UNLOCK was not answered when its session lost this connection: it may hold less than its account */
	bool detached[NAMES_MAX];                      /* a LOCK of that name waited when this connection, or one before, was lost */
	bool taken;                                    /* its client has moved to another daemon: nobody hears what this one says */
	bool resumed;                                  /* it resumed the session of another connection */
	bool owed;                                     /* an account has a LOST to come, before any other reply */
	bool eof, half_closed, eof_known;              /* EOF has arrived; the service knows that it will come; the service knows that it came */
	struct requests sent;                          /* lines on their way or in the input buffer, in order */
	struct requests queued;                        /* untagged lines that are read and wait behind another */
	struct requests running;                       /* requests that began and are not answered */
	int64_t beat_us, active_at;                    /* how often the daemon expects a line (0: it does not); true time of the last one */
	struct account account[OWNERS_MAX][NAMES_MAX]; /* the checker's */
	/* the client's end */
	struct buf out;
	struct requests open; /* requests without a reply, as the client sees it */
};
TAILQ_HEAD(conns, conn);

struct conn *conn_open(struct sim_client *c);
void conns_release(struct world *w);
/* The client sends a line, which includes its LF. */
void conn_write(struct conn *c, const char *line, size_t n, struct request_sim *request);
/* The client ends its side: it closes (EOF and hang-up), dies, or shuts its sending side only. */
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
void conn_on_packet(struct packet *p); /* to a daemon that runs */
void packet_fired(struct packet *p);

#endif
