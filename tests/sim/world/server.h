/* SPDX-License-Identifier: BSD-2-Clause */
/* A Redis server in the world: a simulated node, on a host with clocks, that runs, stands still or is down. */
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

struct server {
	struct world *world;
	unsigned index;
	struct host host;
	struct stream stream;
	struct sim_node *node;
	bool down;
	int64_t paused_until;   /* true time; 0: runs */
	struct flights backlog; /* what arrived while it stood still, or was at another call */
	struct timer idle;      /* when it is done with what it is at */
	int64_t lost_at;        /* true time of its last loss of memory; -1: never */
	unsigned lives;
	int64_t right_us;   /* offset of its host's clock while that is right */
	int64_t stepped_us; /* how far its clock was set back in all */
	int64_t ahead_us;   /* how far ahead in all */
	/* the checker's */
	int64_t fence;                /* the largest fence seen since its memory was last lost */
	int64_t fence_most;           /* the largest that it ever had */
	const struct flight *running; /* whose keys may change now */
	int64_t counted_until[2];     /* true time until which votes count: for daemons of the common configuration, for a strange one */
	int marked_by;                /* which of the two its marker is; -1: not known */
	bool lease_lost;              /* a marker of the common configuration, and the lease that it named, were lost, and it has none since */
	bool blameless;               /* it is joined as what it is, and nothing happened to it since */
	bool tainted;                 /* its clock was stepped, it evicted or was flushed: a daemon may find that out however late */
	bool live[NAMES_MAX];         /* before it ran: was there a key? */
	int64_t ends_ms[NAMES_MAX];   /* and when was it to end, by its clock? */
	bool taken[NAMES_MAX];        /* it set a key where none stood */
	bool stray[NAMES_MAX];        /* the last command that set it came from a connection that is gone; or it may have been there before the memory was lost */
	uint64_t left[NAMES_MAX];     /* with which value, as a hash, an UNLOCK or a lock-delay left a key here last */
	int64_t free_from_ms[NAMES_MAX], unused_ms[NAMES_MAX]; /* by its clock: a key is free from then on; was free before it was taken */
};

void server_init(struct server *s, struct world *w, unsigned index);
/* Its clock is set forward or back. */
void server_step(struct server *s, int64_t us);
void server_release(struct server *s);
int64_t server_wall(const struct server *s);
/* A command has arrived: it runs, or waits until the server goes on, or is lost. */
void server_receive(struct server *s, struct flight *f);
void server_resume(struct server *s); /* it goes on, or is done with a command: what waits runs */
void server_die(struct server *s);
enum revival { REVIVE_BLANK, REVIVE_WHOLE, REVIVE_OLD };
void server_revive(struct server *s, enum revival how);
void server_lost_memory(struct server *s);
/* A first replica is attached; its host is set back to the last snapshot. False: it cannot be now. */
bool server_rename(struct server *s);
bool server_roll_back(struct server *s, bool breaks);

#endif
