/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One redlockd: a real, unmodified service, its host, its clients' connections and its links to the nodes. It can be stopped (SIGSTOP), die, be shut
 * down, start again with a new seed. While it is stopped, what arrives stays in its sockets.
 */
#ifndef SIM_DAEMON_H
#define SIM_DAEMON_H

#include "daemon/core/service.h"
#include "tests/sim/world/conn.h"
#include "tests/sim/world/subscriber.h"
#include "tests/sim/world/host.h"
#include "tests/sim/world/journal.h"
#include "tests/sim/world/link.h"
#include "tests/sim/plan/plan.h"

#define LIVES_MAX 64

enum daemon_state {
	DAEMON_DOWN,
	DAEMON_RUNNING,
	DAEMON_STOPPING, /* its next step is the last before it is stopped, and what it sends stays behind */
	DAEMON_STOPPED,
};

enum arrival_kind { ARRIVAL_PACKET, ARRIVAL_REPLY, ARRIVAL_UP, ARRIVAL_BROKEN, ARRIVAL_WORD };

/* What waits in the sockets of a stopped daemon. */
struct arrival {
	TAILQ_ENTRY(arrival) next;
	enum arrival_kind kind;
	void *what;
	uint64_t epoch;
};
TAILQ_HEAD(arrivals, arrival);

struct sim_daemon {
	struct world *world;
	unsigned index;
	struct host host;
	struct stream stream;
	enum daemon_state state;
	int64_t thaw_at; /* STOPPING, STOPPED */
	int64_t stopped_us; /* so long at a time at most: what it knew of the stores' clocks was that old */
	struct timer timer, thaw;
	struct service *service;
	struct core_conf conf;
	struct effects effects;
	struct arrivals inbox;
	struct sim_journal journal;
	uint64_t life; /* 1, 2, …: which service this is */
	int64_t started_at, died_at[LIVES_MAX];
	char id[24]; /* of this life, as its values begin: learned from the first */
	struct sim_link link[NODES_MAX];
	struct ear ear[NODES_MAX];
	int64_t deaf_until; /* true time until which nothing published arrives */
	bool strange;  /* configured otherwise than the others */
	bool halted;   /* its whole host stands still */
	int64_t waiting, paced; /* of its figures, as they were last */
	int64_t paced_at; /* true time when a round was held back last; 0: never */
	bool newcomer; /* it is started for the first time */
	bool shutting; /* EVENT_STOP is being carried out */
	struct conn *slot[256];
	unsigned slots; /* none behind so many was ever in use */
	uint64_t generation;
};

void daemon_init(struct sim_daemon *d, struct world *w, unsigned index);
void daemon_release(struct sim_daemon *d);
void daemon_start(struct sim_daemon *d);
void daemon_die(struct sim_daemon *d);  /* kill -9 */
void daemon_shut(struct sim_daemon *d); /* SIGTERM, then gone */
void daemon_stop(struct sim_daemon *d, int64_t for_us, bool sending);
/* replace.c: it stands still, the other one is started as its next life, and it goes on. False: it cannot be now. */
bool daemon_replace(struct sim_daemon *d, struct sim_daemon *heir, int64_t for_us);
void daemon_thaw(struct sim_daemon *d);
void daemon_fired(struct sim_daemon *d);

/* Something has arrived: now, or when the daemon runs again. */
void daemon_arrive(struct sim_daemon *d, enum arrival_kind kind, void *what, uint64_t epoch);
/* An event for the service, now. */
void daemon_step(struct sim_daemon *d, struct event *event);
struct instant daemon_boot(const struct sim_daemon *d);
/* What this life of the daemon wanted to send at `depart`: did it live to do so? */
bool daemon_sent(const struct sim_daemon *d, uint64_t life, int64_t depart);
static inline bool daemon_is_up(const struct sim_daemon *d)
{
	return d->state != DAEMON_DOWN;
}

#endif
