/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of one daemon to one node, as daemon/redis keeps them. There are several lanes; each name uses one lane, and each lane keeps its order. When
 * one connection breaks, all do: calls in flight are answered ANSWER_UNKNOWN, or ANSWER_REFUSED where not one byte has left, and then NODE_DOWN follows. The
 * link dials again with a back-off; each new reason for a failure gives another NODE_DOWN, success gives NODE_UP.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "daemon/base/heap.h"
#include "daemon/base/rng.h"
#include "tests/sim/redis/probe_memo.h"
#include "tests/sim/world/server.h"

#define LANES            2
#define FLIGHT_CALLS_MAX 64
#define LINK_STALL_US    (2 * SEC) /* a command that is unanswered for so long breaks the connection */

struct sim_daemon;

enum flight_state { FLIGHT_OUT, FLIGHT_BACK, FLIGHT_LOST };

/* One command, there and back. */
struct flight {
	struct timer timer;
	TAILQ_ENTRY(flight) in_link;    /* until it is answered; afterwards in world.spare */
	TAILQ_ENTRY(flight) in_backlog; /* of a server that stands still or is busy */
	struct sim_link *link;          /* NULL: its connection is gone; if the command still runs, nobody gets the reply */
	struct server *server;
	struct sim_daemon *daemon;
	uint64_t run;           /* the run of the daemon that sent it */
	bool strange;           /* of the daemon as it was then: it has another configuration than the others */
	unsigned dialled;       /* the run of the server that its connection leads to: a later run gets nothing */
	char sender[17];        /* how the values of that run begin */
	int64_t depart;         /* true time */
	int64_t wanted_at;      /* true time when the service wanted it */
	struct instant emitted; /* the daemon's BOOTTIME when the service wanted it */
	enum flight_state state;
	unsigned lane, count;
	bool refused; /* there was no connection: nothing was sent */
	struct arena arena; /* the memory that calls and answers point to */
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
	bool up;     /* as the daemon knows */
	bool broken; /* it broke, and the daemon does not know yet */
	int64_t up_since;
	int64_t met_at; /* true time when this run of the daemon first reached the server; INT64_MAX: it never did */
	uint64_t epoch; /* counts the connections */
	unsigned reasons_given; /* bits: reasons that NODE_DOWN has given since the link was last up */
	unsigned dialled; /* the run of the server that it leads to */
	int64_t stalled_to, stalled_from, slow_until, slow;
	int64_t lane_stalled[LANES];              /* true time until which a lane is stalled, both ways, as long as this connection lasts */
	int64_t late_at;                          /* true time of the last answer that came after the timeout */
	int64_t last_to[LANES], last_from[LANES]; /* arrivals, in order */
	struct flights flights;                   /* sent and not answered, oldest first */
	struct flight *batch;                     /* being collected */
};

void link_init(struct sim_link *l, struct sim_daemon *d, struct server *s);
/* The daemon starts: the link dials. The daemon is gone: what it sent may still run. */
void link_begin(struct sim_link *l);
void link_end(struct sim_link *l);
void link_call(struct sim_link *l, const struct call *call, int64_t depart);
void link_flush(struct sim_link *l);
/* The connection breaks now; the daemon learns of it a moment later. */
void link_break(struct sim_link *l);
/* What the daemon learns. */
void link_on_broken(struct sim_link *l, uint64_t epoch);
void link_on_up(struct sim_link *l, uint64_t epoch);
void link_on_reply(struct flight *f);
/* True time since when every answer came in time; INT64_MAX: one is overdue. */
int64_t link_prompt_since(const struct sim_link *l);

void link_fired(struct sim_link *l);
void link_watch_fired(struct sim_link *l);
void flight_fired(struct flight *f);
/* The server has run the command. */
void flight_answered(struct flight *f, int64_t took_us);
const char *call_word(enum call_kind kind);
void flight_lose(struct flight *f); /* the command is lost with the server: its sender learns of that when the connection breaks */
/* One of its calls is answered. */
void flight_deliver(struct flight *f, unsigned i, enum answer_class class, const char *text);
/* Its connection breaks: the command may still reach the server, and late, but nobody gets the reply. */
void flight_abandon(struct sim_link *l, struct flight *f);
/* The connection broke before a byte of the command left. */
void flight_unsend(struct sim_link *l, struct flight *f);
int64_t link_latency(struct sim_link *l, struct stream *s); /* one way */
void flight_drop(struct flight *f); /* the flight is free for another command */
void flights_release(struct flights *spare);

#endif
