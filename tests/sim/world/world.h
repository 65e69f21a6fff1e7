/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated world: one heap of events, one true time. Everything in it, the real services included, moves only when an event of the
 * heap fires; nothing reads a clock or a source of chance outside. A world is a function of its plan.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "tests/sim/check/checker.h"
#include "tests/sim/client/client.h"
#include "tests/sim/world/daemon.h"
#include "tests/sim/world/host.h"
#include "tests/sim/world/link.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/client/resource.h"
#include "tests/sim/world/server.h"
#include "tests/sim/plan/stream.h"

/* What a timer of the world's heap is embedded in. */
enum sim_timer {
	AT_FAULT,
	AT_FAULT_END,
	AT_SNAPSHOT,
	AT_RUN, /* the next step of a job */
	AT_PACKET,
	AT_FLIGHT,
	AT_WORD,   /* something published arrives */
	AT_DAEMON, /* the service wants to be stepped */
	AT_THAW,
	AT_LINK,
	AT_WATCH, /* has a link stalled? */
	AT_CLIENT,
	AT_CLIENT_THAW,
	AT_CHAT,
	AT_ACCESS, /* the resource, or its answer */
	AT_STAGE,
	AT_IDLE, /* a server is done with a command */
};

enum stage {
	STAGE_WARM, /* the stores are being joined */
	STAGE_FAULTS,
	STAGE_HEALED,  /* no more faults; what they left behind passes */
	STAGE_SETTLED, /* bounds of liveness hold from here on */
	STAGE_FINALE,
	STAGE_LEAVING, /* all clients have gone */
	STAGE_OVER,
};

struct fault_run {
	struct conn *conn; /* CLIENT_CUT, CLIENT_SILENT: which */
	struct sim_daemon *daemon;
	struct timer timer, end, snapshot;
	int64_t begun_at; /* true time */
	unsigned index;
};

struct tally {
	int64_t grants, events, faults[FAULT_N];
	int64_t takeovers, rejoins; /* finales that were played */
	int64_t most_names; /* that a daemon knew at a time */
	int64_t most_waited, paced; /* requests that waited at a time; rounds that did, for stores that were busy */
	int64_t published, heard, handed_on, heads, records, restored, resumed, adopted;
	int64_t partial; /* commands that a store carried out for some of their calls and refused for others */
};

#define STORMERS       4
#define STORM_NAMES    1000

/* What a daemon has said of those names. */
struct storm_book {
	uint64_t since[STORM_NAMES]; /* the step when it last said that it is held; 0: it is not */
	const struct conn *holder[STORM_NAMES];
};

struct world {
	const struct plan *plan;
	enum fault_class class;
	int64_t now; /* true time, microseconds */
	struct heap heap;
	enum stage stage;
	struct timer stage_timer;
	int finale_step;
	int64_t ghosts_until; /* what is under way of connections that are gone is carried out by then */
	bool finale_alone; /* nobody but the heir wanted the lock when its daemon died */
	int64_t finale_since;
	struct run *holder, *heir; /* of the finale */
	struct run *head, *next;   /* of the trial of a dead head */
	bool head_died;
	int64_t next_since; /* when it became free for the next; 0: it did not */
	struct sim_daemon daemon[DAEMONS_MAX];
	struct server server[NODES_MAX];
	struct sim_client client[CLIENTS_MAX];
	struct resource resource[NAMES_MAX];
	struct run run[JOBS_MAX + 64];
	unsigned runs;
	struct fault_run fault[FAULTS_MAX];
	struct stream finale;
	struct conns conns;
	unsigned conn_count;
	struct requests requests;
	struct holds holds;
	struct flights spare; /* that ended, to be used again */
	struct checker checker;
	struct tally tally;
	uint64_t hash;
	FILE *trace; /* NULL: nobody looks */
	struct storm_book storm[DAEMONS_MAX];
	int64_t waiting; /* requests, at all daemons */
	bool tokens_are_safe, exclusion_is_safe;
	int64_t set_back_us; /* all clocks of nodes, for good: plan_set_back_us */
	int64_t deaf_until; /* true time until which wake-ups may be lost for another reason: somebody in line is dead */
	bool flaps;   /* a minority of the nodes goes on being slow, hanging or flapping when all else is healed */
	bool strange; /* a daemon is configured otherwise: nobody can promise progress */
	bool failed;
};

/* A world of the plan, run to its end or to its first violation: see world->checker.violation. */
void world_run(struct world *w, const struct plan *plan, FILE *trace);
void world_release(struct world *w);

void world_at(struct world *w, struct timer *t, enum sim_timer kind, int64_t at);
/* Part of the trace: what happened, as numbers for the hash, as words if somebody looks. */
void world_note(struct world *w, uint64_t a, uint64_t b, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* An EFFECT_LOG of that daemon. */
void world_log(struct world *w, unsigned daemon, const struct effect *e);
uint64_t hash_bytes(const void *p, size_t n);

/* figures.c */
void figures_step(struct sim_daemon *d);
void figures_died(struct sim_daemon *d);
/* storm.c */
bool storm_begin(struct sim_client *c); /* false: this world has none */
void storm_fired(struct sim_client *c);
void storm_said(struct conn *c, struct span line); /* a line of the daemon's; a row or the reply of a LIST */
void storm_listed(struct request_sim *q, struct span line);
void storm_over(const struct conn *c); /* it ends */
void storm_life(struct sim_daemon *d);

/* fault.c */
void fault_begin(struct world *w, struct fault_run *f);
void fault_ends(struct world *w, struct fault_run *f);
/* finale.c: what follows the faults. */
void stage_fired(struct world *w);
struct run *finale_lock(struct world *w, unsigned daemon); /* a client of that daemon asks for k0, for as long as it takes; NULL: there is none */
void finale_wait(struct world *w, int64_t us, int step);
/* trial.c: the steps of the finale from TRIAL_BEGIN to TRIAL_OVER */
enum { TRIAL_OVER = 5, TRIAL_BEGIN = 10 };
bool trial_step(struct world *w);

static inline int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline const char *name_of(int64_t name)
{
	static const char *const word[NAMES_MAX] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};

	return word[name];
}

static inline struct span name_span(int64_t name)
{
	return (struct span){name_of(name), 2};
}

static inline bool is_calm(const struct world *w)
{
	return w->stage >= STAGE_SETTLED;
}

#endif
