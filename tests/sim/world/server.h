/* SPDX-License-Identifier: BSD-2-Clause */
/* A Redis server of the world: a simulated node on a host with clocks. It runs, stands still or is down. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "tests/sim/world/host.h"
#include "tests/sim/redis/node.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"

#include <sys/queue.h>

struct world;
struct flight;
TAILQ_HEAD(flights, flight);

/* A use that the store admitted. */
struct metered_use {
	int64_t name, at, cost; /* at: by its clock */
	bool past;              /* it has left its window: a clock that is set back since does not bring it back */
};

struct metered {
	struct metered_use *use;
	unsigned uses, cap;
	bool restored; /* it may remember more than this: it was set back to a snapshot */
};

struct server {
	struct world *world;
	unsigned index;
	struct host host;
	struct stream stream;
	struct sim_node *node;
	bool down;
	int64_t paused_until;   /* true time; 0: it runs */
	struct flights backlog; /* commands that arrived while it stood still or was busy */
	struct timer idle;      /* when it has finished the command that it is busy with */
	int64_t lost_at;        /* true time of its last loss of memory; -1: never */
	unsigned runs;
	int64_t right_us;   /* offset of its host's clock when that is right */
	int64_t stepped_us; /* how far its clock was set back, in all */
	int64_t ahead_us;   /* how far its clock was set forward, in all */
	int64_t nudged_at;  /* true time when it was last set forward by so little that a daemon may not notice; 0: never */
	int64_t ahead_at;   /* true time when it was last set forward, or came back from further ahead, to where daemons accept it; 0: never */
	/* the checker's */
	struct metered metered;
	int64_t fence;                                         /* its fence after the last command; never falls, unless it loses its memory */
	int64_t fence_most;                                    /* the largest fence that it ever had */
	const struct flight *running;                          /* the command that runs now, and may change keys */
	int64_t counted_until[2]; /* true time until which its votes count: for daemons of the common configuration, and for the stranger */
	int marked_by;                                         /* which of the two its marker belongs to; -1: not known */
	bool lease_lost; /* it lost a marker of the common configuration, with the lease that it named, and has none since */
	/*
	 * Its marker tells of the previous set of servers, or belongs to that. redlockd(8) says: two sets know nothing of each other when no common server in
	 * reach knows of both. So the servers that stay must be in reach, with their data, when the new generation starts.
	 */
	bool knows_set;
	bool was_taken; /* it was taken over by a daemon of another configuration */
	bool blameless;                                        /* it was joined under its present identity, and nothing happened to it since */
	bool tainted;                                          /* its clock was set, it evicted or was flushed: a daemon may find that out late */
	uint16_t named;                                        /* bits: the names in the calls of the running command; the next four are known only for them */
	bool live[NAMES_MAX];                                  /* before the command ran: was there a key? */
	int64_t kept_ms[NAMES_MAX];                            /* until when did a command leave the key behind on purpose, by the node's clock? */
	int64_t ends_ms[NAMES_MAX];                            /* and when was the key to end, by the node's clock? */
	bool was_broken[NAMES_MAX];                            /* and was its value broken? */
	bool taken[NAMES_MAX];                                 /* the command set a key where there was none */
	bool stray[NAMES_MAX]; /* the key is not checked: it was set late by a previous run, or perhaps before the memory was lost */
	uint64_t left_behind[NAMES_MAX];                       /* the value, as a hash, of the last key that UNLOCK keep= or a lock-delay left here */
	int64_t free_from_ms[NAMES_MAX], unused_ms[NAMES_MAX]; /* by its clock: since when the key is free; how long it was free before it was taken */
};

void server_init(struct server *s, struct world *w, unsigned index);
/* Sets its clock forward or back. */
void server_step(struct server *s, int64_t us);
void server_release(struct server *s);
int64_t server_wall(const struct server *s);
/* A command has arrived: it runs, waits until the server can run it, or is lost. */
void server_receive(struct server *s, struct flight *f);
void server_carry_out(struct server *s, struct flight *f); /* it runs, and is not answered yet */
void server_resume(struct server *s); /* it goes on, or has finished a command: the backlog runs */
void server_die(struct server *s);
enum revival { REVIVE_BLANK, REVIVE_WHOLE, REVIVE_OLD };
void server_revive(struct server *s, enum revival how);
void server_lost_memory(struct server *s);
/* A first replica is attached; or its host is set back to the last snapshot. False: impossible now. */
bool server_rename(struct server *s);
bool server_roll_back(struct server *s, bool breaks);

#endif
