/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of one daemon to one node, as daemon/redis keeps them: several lanes, a name pinned to one, each in order; when one breaks all
 * do. What is in flight is answered ANSWER_UNKNOWN, or ANSWER_REFUSED where not one byte has left, and then NODE_DOWN is told. It is dialled again with a
 * back-off; NODE_DOWN is told again for each new reason why that is in vain, NODE_UP when it stands.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "daemon/base/backoff.h"
#include "daemon/base/heap.h"
#include "tests/sim/redis/probe_memo.h"
#include "tests/sim/world/server.h"

#define LANES            2
#define FLIGHT_CALLS_MAX 64
#define LINK_STALL_US    (2 * SEC) /* unanswered for so long, and the connection is given up */

struct sim_daemon;

enum flight_state { FLIGHT_OUT, FLIGHT_BACK, FLIGHT_LOST };

/* One command, there and back. */
struct flight {
	struct timer timer;
	TAILQ_ENTRY(flight) in_link;    /* until it is answered; then in world.spare */
	TAILQ_ENTRY(flight) in_backlog; /* of a server that stands still */
	struct sim_link *link;          /* NULL: its connection is gone; if it still runs, nobody hears of it */
	struct server *server;
	struct sim_daemon *daemon;
	uint64_t life;          /* of the daemon that sent it */
	unsigned dialled;       /* of the server that its connection leads to: nothing reaches a later one */
	char sender[17];        /* how the values of that life begin */
	int64_t depart;         /* true time */
	int64_t wanted_at;      /* true time when the service wanted it */
	struct instant emitted; /* the daemon's BOOTTIME when the service wanted it */
	enum flight_state state;
	unsigned lane, count;
	bool refused; /* there was no connection: not one byte was sent */
	struct arena arena; /* what calls and answers point to */
	struct call call[FLIGHT_CALLS_MAX];
	struct answer answer[FLIGHT_CALLS_MAX];
};

struct sim_link {
	struct sim_daemon *daemon;
	struct server *server;
	struct stream stream, to, from;
	struct timer timer, watch;
	struct backoff backoff;
	struct rng rng;
	bool up;     /* as the daemon knows it */
	bool broken; /* it broke, and the daemon has not heard yet */
	int64_t up_since;
	uint64_t epoch; /* of the connection */
	unsigned told;  /* bits: reasons that NODE_DOWN has named since it was up last */
	unsigned dialled; /* which life of the server it leads to */
	int64_t stalled_to, stalled_from, slow_until, slow;
	int64_t lane_stalled[LANES]; /* both ways, and no longer than this connection stands */
	int64_t late_at; /* true time of the last answer that took longer than a command may take */
	int64_t last_to[LANES], last_from[LANES]; /* arrivals, in order */
	struct flights flights;                   /* sent and not answered, oldest first */
	struct flight *batch;                     /* being collected */
};

void link_init(struct sim_link *l, struct sim_daemon *d, struct server *s);
/* The daemon is up: dial. The daemon is gone: what it sent may still run. */
void link_begin(struct sim_link *l);
void link_end(struct sim_link *l);
void link_call(struct sim_link *l, const struct call *call, int64_t depart);
void link_flush(struct sim_link *l);
/* The connection breaks now; the daemon hears of it a moment later. */
void link_break(struct sim_link *l);
/* What the daemon hears. */
void link_on_broken(struct sim_link *l, uint64_t epoch);
void link_on_up(struct sim_link *l, uint64_t epoch);
void link_on_reply(struct flight *f);
/* True time since when every answer has come in time; INT64_MAX: one is overdue. */
int64_t link_prompt_since(const struct sim_link *l);

void link_fired(struct sim_link *l);
void link_watch_fired(struct sim_link *l);
void flight_fired(struct flight *f);
/* The server has run it. */
void flight_answered(struct flight *f, int64_t took_us);
const char *call_word(enum call_kind kind);
void flight_lose(struct flight *f); /* with the server: who sent it hears of that when the connection breaks */
/* One of its calls is answered. The connection that it went out on breaks: it may reach the server all the same, and late; nobody hears of its reply. */
void flight_tell(struct flight *f, unsigned i, enum answer_class class, const char *text);
void flight_orphan(struct sim_link *l, struct flight *f);
/* Not one byte of it has left. */
void flight_unsend(struct sim_link *l, struct flight *f);
int64_t link_latency(struct sim_link *l, struct stream *s); /* one way */
void flight_drop(struct flight *f); /* it is used again for another command */
void flights_release(struct flights *spare);

#endif
