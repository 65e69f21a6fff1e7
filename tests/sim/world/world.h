/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated world: one heap of events and one true time. Everything in it moves only when an event of the heap fires, the real services included; nothing
 * reads a clock or a source of chance from outside. A world is a function of its plan.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "tests/sim/check/checker.h"
#include "tests/sim/check/hooks.h"
#include "tests/sim/client/client.h"
#include "tests/sim/client/resource.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"
#include "tests/sim/stage/stage.h"
#include "tests/sim/world/daemon.h"
#include "tests/sim/world/host.h"
#include "tests/sim/world/line.h"
#include "tests/sim/world/link.h"
#include "tests/sim/world/server.h"
#include "tests/sim/world/store.h"

/* What a timer of the heap belongs to. */
enum sim_timer {
	AT_FAULT,
	AT_FAULT_END,
	AT_SNAPSHOT,
	AT_TASK, /* the next step of a task */
	AT_PACKET,
	AT_FLIGHT,
	AT_MESSAGE, /* a published message arrives */
	AT_DAEMON,  /* a timer of the service rings */
	AT_THAW,
	AT_DRAIN,
	AT_RULES,
	AT_KILLED, /* a daemon and its memory store */
	AT_LINK,
	AT_WATCH, /* looks whether a link has stalled */
	AT_CLIENT,
	AT_CLIENT_THAW,
	AT_SIDE,
	AT_READER,
	AT_NESTER,
	AT_RATER,
	AT_PERMITTER,
	AT_WORKER,
	AT_REPEATER,
	AT_ACCESS, /* the next step of an access to a resource */
	AT_STAGE,
	AT_IDLE, /* a server has finished a command */
};

struct active_fault {
	struct conn *conn; /* the connection that a fault of a client broke */
	struct sim_daemon *daemon;
	struct timer timer, end, snapshot;
	int64_t begun_at; /* true time */
	unsigned index;
};

struct tally {
	int64_t grants, events, faults[FAULT_N];
	int64_t takeovers, rejoins; /* trials of the finale that took place */
	int64_t most_names; /* the most names that a daemon knew at a time */
	int64_t most_waited, admission_waits; /* the most requests that waited at a time; rounds that waited for busy stores */
	int64_t published, heard, words, told, handed_on, heads, records, restored, resumed, adopted, together, permits;
	int64_t partial; /* commands of which a store refused some calls and carried out others */
};

#define STORMERS       4
#define STORM_NAMES    1000

/* What the lines of a daemon say of the names of storms. */
struct storm_holds {
	uint64_t since[STORM_NAMES]; /* the step in which a line last said that the name is held; 0: it is not */
	const struct conn *holder[STORM_NAMES];
};

/* The steps of daemons that took long. A world is the same each time, so those that took long each time are long, whatever else the processor does. */
#define SLOW_STEPS 32
struct step_watch {
	int64_t (*processor_ns)(void); /* that this thread has used; NULL: nobody watches */
	int64_t (*elapsed_ns)(void);   /* the same, or what costs less to read and is never less than that */
	int64_t sampled_ns;            /* of the processor, once for some steps */
	bool heap_is_sorted;           /* before each step: what the simulated clients and stores have freed by then costs the step nothing */
	uint64_t steps;
	unsigned count;
	struct slow_step {
		uint64_t number;
		int64_t took_ns, at;
		unsigned daemon;
	} slow[SLOW_STEPS];
};

struct world {
	const struct plan *plan;
	struct step_watch *watch;
	enum fault_class class;
	int64_t now; /* true time, microseconds */
	struct heap heap;
	enum stage stage;
	struct timer stage_timer;
	int finale_step;
	int64_t ghosts_until; /* true time by which all commands of broken connections have run */
	bool finale_alone; /* only the successor wanted the lock when the daemon of the holder died */
	int64_t finale_fence;  /* the largest fence of k0 that anybody was told by then */
	int64_t finale_since;
	struct task *holder, *successor; /* of the finale: who holds k0, and who waits for it when the holder's daemon dies */
	struct task *head, *next;        /* of the dead-head trial: the first and the second in the queue */
	bool head_died;
	int64_t next_since; /* true time when the lock became free for `next`; 0: it did not */
	struct sim_daemon daemon[DAEMONS_MAX];
	struct server server[NODES_MAX];
	struct sim_client client[CLIENTS_MAX];
	struct resource resource[NAMES_MAX];
	struct task task[JOBS_MAX + 64];
	unsigned tasks;
	struct active_fault fault[FAULTS_MAX];
	struct stream finale;
	struct conns conns;
	unsigned conn_count;
	struct requests requests;
	struct holds holds;
	struct flights spare; /* flights that ended, for reuse */
	struct checker checker;
	struct tally tally;
	uint64_t hash;
	FILE *trace; /* NULL: no trace is wanted */
	struct storm_holds storm[DAEMONS_MAX];
	int64_t waiting; /* waiting requests of all daemons */
	bool tokens_are_safe, exclusion_is_safe;
	int64_t set_back_us; /* how far the clocks of all nodes are set back for good: plan_set_back_us */
	int64_t deaf_until;  /* true time until which wake-ups may be missed, because a queued daemon is dead */
	bool flaps;          /* a minority of the nodes stays slow, hangs or flaps in the healed world */
	bool strange;        /* a daemon has another configuration: progress is not promised */
	bool failed;
};

/* Runs the world of the plan to its end or to its first violation: see world->checker.violation. watch: NULL: how long steps take is not measured. */
void world_run(struct world *w, const struct plan *plan, FILE *trace, struct step_watch *watch);
void world_release(struct world *w);

void world_at(struct world *w, struct timer *t, enum sim_timer kind, int64_t at);
/* Notes what happened: as numbers (a, b) in the hash of the world, as words in its trace. Without a trace the words are not even evaluated. */
#define world_note(w, a, b, ...) (world_hash(w, a, b) ? world_tell(w, __VA_ARGS__) : (void)0)
bool world_hash(struct world *w, uint64_t a, uint64_t b); /* is a trace wanted? */
void world_tell(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Notes an EFFECT_LOG of that daemon. */
void world_log(struct world *w, unsigned daemon, const struct effect *e);
uint64_t hash_bytes(const void *p, size_t n);

/* daemon_metrics.c */
void daemon_metrics_step(struct sim_daemon *d);
void daemon_metrics_died(struct sim_daemon *d);
/* storm.c */
bool storm_begin(struct sim_client *c); /* false: this world has no storms */
void storm_fired(struct sim_client *c);
void storm_said(struct conn *c, struct span line); /* a line of the daemon; a row or the reply of a LIST */
void storm_listed(struct request_sim *q, struct span line);
void storm_conn_over(const struct conn *c); /* the connection ends */
void storm_run_begins(struct sim_daemon *d);

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
