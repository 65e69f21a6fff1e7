/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One redlockd: a real, unmodified service, its host, the connections of its clients and its links to the nodes. It can be stopped (SIGSTOP), die, be shut
 * down, and start again with a new seed. While it is stopped, what arrives waits in its sockets.
 */
#ifndef SIM_DAEMON_H
#define SIM_DAEMON_H

#include "daemon/core/service/service.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/world/conn.h"
#include "tests/sim/world/host.h"
#include "tests/sim/world/journal.h"
#include "tests/sim/world/link.h"
#include "tests/sim/world/subscriber.h"

#define RUNS_MAX 64

enum daemon_state {
	DAEMON_DOWN,
	DAEMON_RUNNING,
	DAEMON_STOPPING, /* its next step is the last before it stops, and what that sends leaves only when it goes on */
	DAEMON_STOPPED,
};

enum arrival_kind { ARRIVAL_PACKET, ARRIVAL_REPLY, ARRIVAL_UP, ARRIVAL_BROKEN, ARRIVAL_MESSAGE };

/* What waits in the sockets of a stopped daemon. */
struct arrival {
	TAILQ_ENTRY(arrival) next;
	enum arrival_kind kind;
	void *what;
	uint64_t epoch;
};
TAILQ_HEAD(arrivals, arrival);

/* Of the names k0 …, bits: see check/named.c. By user: 1 is the one of the Unix socket. */
struct named {
	unsigned granted, recent[2];
	int64_t last[2]; /* granted last; -1: it is not known */
};

struct sim_store;

struct sim_daemon {
	struct world *world;
	unsigned index;
	struct host host;
	struct stream stream;
	enum daemon_state state;
	int64_t thaw_at; /* STOPPING, STOPPED */
	int64_t stopped_us; /* the longest stop so far: its knowledge of the stores' clocks was that old */
	struct timer timer, thaw;
	struct service *service;
	struct core_conf conf;
	struct effects effects;
	struct arrivals inbox;
	struct sim_journal journal;
	uint64_t run; /* 1, 2, …: counts its services */
	int64_t started_at, died_at[RUNS_MAX];
	int64_t restored_run_us; /* host_run_us() when its sessions were restored last: then their graces began anew */
	int64_t first_lease_us; /* its lease when it started */
	char id[24]; /* how the values of this run begin */
	struct sim_store *store;          /* NULL: its stores are servers */
	int64_t pass_depart;              /* true time when what the running pass sends leaves; 0: none runs, or its stores are servers */
	struct sim_link link[NODES_MAX]; /* by server, as the subscribers are */
	struct subscriber subscriber[NODES_MAX];
	uint16_t servers;                 /* bits: those of its configuration */
	unsigned server_of[NODES_MAX], node_of[NODES_MAX]; /* which server each of its nodes is, and the other way round */
	int64_t deaf_until;               /* true time until which no published message arrives */
	struct named named;
	bool carries;                     /* stopped: it goes on in another process */
	bool strange;                     /* it has another configuration than the others */
	bool halted;                      /* its host stands still */
	int64_t waiting, admission_waits; /* of its metrics, after its last step */
	int64_t admission_waited_at;      /* true time when a round last waited for admission; 0: never */
	bool newcomer;                    /* it starts as one that never ran before */
	bool shutting;                    /* EVENT_STOP is being carried out */
	bool drains, drained;             /* it was asked to DRAIN; it has ended by that */
	bool drain_over;                  /* its fault has ended */
	uint64_t admin;                   /* the session that has asked: no client */
	struct instant drain_until;       /* by its clock: the drain is over then at the latest */
	int64_t drain_grants;             /* how many grants it had made before; -1: not known yet */
	unsigned drain_late;              /* how often it was found to drain after that time */
	struct timer drain;               /* the next look whether it may end */
	struct {
		struct timer timer;
		struct stream stream;
		unsigned set;             /* those that it has: see daemon_rules.c */
		bool judging;             /* by them what waits is being judged still, in portions … */
		unsigned steps;           /* … in so many steps until now … */
		int64_t since;            /* … from then on, in true time */
	} rules;
	struct conn *slot[256];
	unsigned slots; /* slots from here on were never in use */
	uint64_t generation;
};

void daemon_init(struct sim_daemon *d, struct world *w, unsigned index);
void daemon_configure(struct sim_daemon *d, bool strange); /* daemon_conf.c: before it is started */
void daemon_release(struct sim_daemon *d);
void daemon_start(struct sim_daemon *d); /* unless its host is off */
void daemon_die(struct sim_daemon *d);  /* kill -9 */
void daemon_shut(struct sim_daemon *d); /* SIGTERM, then gone */
void daemon_stop(struct sim_daemon *d, int64_t for_us, bool sending);
/* daemon_carry.c: at the end of a pause it goes on in another process. */
void daemon_carry(struct sim_daemon *d);
void daemon_thaw(struct sim_daemon *d);
/*
 * daemon_drain.c: DRAIN in=, or for as long as somebody holds if in_us is negative. False: impossible now. It ends by itself, at the latest when the fault
 * ends, and is started again then.
 */
bool daemon_drain(struct sim_daemon *d, int64_t in_us);
void daemon_drain_step(const struct sim_daemon *d); /* after each step */
void daemon_drain_fired(struct sim_daemon *d);
void daemon_drain_ends(struct sim_daemon *d);
void daemon_fired(struct sim_daemon *d);
/* daemon_rules.c */
void daemon_rules_begin(struct sim_daemon *d);
void daemon_rules_fired(struct sim_daemon *d);
void daemon_rules_step(struct sim_daemon *d); /* after each step */
bool ruled_denies(const struct conn *c, struct span name); /* as things stand, this connection may not lock it */

/* Something has arrived: it is read now, or when the daemon runs again. */
void daemon_arrive(struct sim_daemon *d, enum arrival_kind kind, void *what, uint64_t epoch);
/* daemon_step.c: gives the service an event now; sets its timer. */
void daemon_step(struct sim_daemon *d, struct event *event);
void daemon_arm(struct sim_daemon *d);
bool daemon_is_killed(const struct sim_daemon *d); /* its process has ended in this moment, which is a step too early for its connections to know */
struct instant daemon_boot(const struct sim_daemon *d);
/* Did this run of the daemon live until `depart`, and so send what it wanted to send then? */
bool daemon_sent(const struct sim_daemon *d, uint64_t run, int64_t depart);
static inline bool daemon_has_server(const struct sim_daemon *d, unsigned server)
{
	return d->servers >> server & 1;
}

static inline bool daemon_is_up(const struct sim_daemon *d)
{
	return d->state != DAEMON_DOWN;
}

/* The value of a key is its own: it begins with the id of the daemon. */
static inline bool daemon_wrote(const struct sim_daemon *d, struct span value)
{
	return value.n > 16 && memcmp(d->id, value.p, 16) == 0;
}

#endif
