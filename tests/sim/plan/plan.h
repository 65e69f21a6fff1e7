/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan is all that is decided before a world runs: its shape, the schedule of faults, the workload. The same plan gives the same run. On disk it is plain
 * text, one fault or job a line, so that a shrunk failure can be read.
 */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FAULTS_MAX  128
#define JOBS_MAX    640
#define DAEMONS_MAX 5
#define CLIENTS_MAX 240
#define CLIENTS_COMMON 30 /* only crowds have more */
#define NAMES_MAX   8
#define OWNERS_MAX  3
#define TORN_MOST   100 /* x of DAEMON_TORN */

enum fault_kind {
#define FAULT(id, ...) FAULT_##id,
#include "tests/sim/plan/fault.def"
#undef FAULT
	FAULT_N,
	FAULT_DRAWN = FAULT_CLIENT_HALF_CLOSE + 1 /* the kinds that are drawn at random; those from here on occur only in scenes */
};

enum fault_class { CLASS_T, CLASS_X };
enum fault_of { OF_DAEMON, OF_NODE, OF_CLIENT };

struct fault_row {
	const char *word;
	enum fault_class class;
	enum fault_of of;
	const char *help;
};
extern const struct fault_row fault_table[FAULT_N];

/* x of DAEMON_CRASH and DAEMON_STOP: how the daemon is started again. */
enum restart { RESTART_WITHOUT_JOURNAL = 7, RESTART_FIRST = 8, RESTART_STRANGE = 9 };

struct fault {
	enum fault_kind kind;
	int64_t at_us, for_us, a, b, x;
};

/* How a job ends the hold that it got. */
enum ending {
	END_UNLOCK,
	END_FENCE, /* UNLOCK fence=, after an UNLOCK with the fence of an older grant */
	END_SYNC,  /* UNLOCK sync=yes */
	END_KEEP,  /* UNLOCK keep= */
	END_QUIT,
	END_CLOSE,
	END_HALF_CLOSE,
	END_LEAVE, /* the lease expires (renew=no) */
	END_N
};

#define JOB_FIELDS(row)                                                                                                          \
	row(at_us) row(client) row(name) row(owner) row(wait_ms) /* -1: for ever */ row(ttl_ms) /* 0: none */ row(renew) row(tagged)           \
		row(hold_us) row(acts) /* accesses to the resource while holding */                                              \
		row(careless)          /* acts without checking its deadline: only tokens protect */                           \
		row(cancel_us) row(extend) /* at which act; 0: never; -1: at each, to extend_ms and ttl_ms in turns */ row(extend_ms) row(reenter) row(ending) \
		row(keep_ms) /* of END_KEEP; 0: half the lease of the plan */ row(delay) /* where delays are mixed: which, see plan_delay_us() */ \
		row(priority)
struct job {
#define JOB_ROW(field) int64_t field;
	JOB_FIELDS(JOB_ROW)
#undef JOB_ROW
};

#define PLAN_FIELDS(row)                                                                                                         \
	row(seed) row(nodes) row(daemons) row(clients) row(names) row(trust) row(lease_us) row(max_lease_us)                     \
		row(delay_us) /* delay= of every LOCK, and max_delay */ row(timeout_us) row(latency_us) row(jitter_us) row(client_latency_us)          \
			row(node_offset_us) row(daemon_offset_us) row(drift_ppm) row(remote_percent) row(fragment_percent)       \
				row(heartbeat_ms) row(ghost_percent)                                                     \
					row(heard_percent) /* of published messages; 0: none ever */             \
					row(echo_percent)  /* of them are late, or arrive twice */                           \
					row(grace_ms)      /* HELLO grace=; 0: none */               \
					row(stranger)      /* enum stranger */                                           \
					row(strangers)     /* how many daemons are strangers; 0: one */                  \
					row(stranger_lease_us) /* max_lease of a higher generation; 0: that of the others, but another set */ \
				row(stranger_delay_us) /* its max_delay; 0: that of the others; -1: none */               \
				row(stranger_min_us)   /* its min_lease; 0: that of the others */                         \
				row(changed)           /* how many servers are removed or added; 0: one */               \
				row(window)        /* unanswered calls of a daemon per node; 0: the default */ \
		row(warm_us) /* when faults and jobs begin */                                                                    \
		row(length_us)                                                    /* when the world heals */                 \
		row(finale)                                                       /* bits: the trials in the healed world */ \
		row(chatter_ms)                                                   /* about how often clients ask beside their jobs; 0: never */ \
		row(foreign)                                                      /* redis.foreign: yes */                      \
		row(storm) /* names that a storm locks at a time; 0: there are no storms */                                       \
		row(throng) /* clients that lock dozens of them at a time; 0: a few clients lock all of them */                     \
		row(reloads) /* reloads change the lease and how many sessions may be detached */                                 \
		row(rolls) /* some clients LIST sessions */                                                                       \
		row(breaks_ms) /* about how often a client breaks a lock or kills a session; 0: never */                                     \
		row(mixed_delays) /* each job has its own delay= */                                                                \
		row(nests) /* clients hold some names and wait for more, in random order; 2: some of the names are semaphores */ \
		row(nests_group) /* … some of them by LOCKALL and LOCKANY, and one beside what they wait for */ \
		row(gathers) /* clients ask for several of these names at once, and lock them in both modes */ \
		row(rates) /* clients use rate limits: enum rates */ \
		row(permits) /* clients ask for permits of semaphores */                                                            \
		row(chores) /* clients defer work, and take it; 2: they list it, too, and make due again what has failed for good */ \
		row(notes) /* clients ask which names were locked */                                                                \
		row(inquires) /* daemons ask each other who holds a name: 2: all but the first */                                  \
		row(readers) /* clients lock some names in both modes */                                                           \
		row(memory)  /* the only daemon is its own store, and the only node */                                             \
		row(cuts)    /* clients lose answers, and repeat their requests with count= */                                        \
		row(meets)   /* jobs that are deferred have the names of readers and writers for locks */                              \
		row(rules_ms) /* about how often a daemon reads other rules; 0: there are none */                                       \
		row(owners)  /* sessions ask for permits in the names of several owners */                                             \
		row(slices)  /* a step has time for one timer that is due, and for one request that a DRAIN refuses */                \
		row(service_us) /* that a node takes for each call, one after the other; 0: none */
struct plan {
#define PLAN_ROW(field) int64_t field;
	PLAN_FIELDS(PLAN_ROW)
#undef PLAN_ROW
	struct fault fault[FAULTS_MAX];
	struct job job[JOBS_MAX];
	unsigned faults, jobs;
};

enum finale {
	FINALE_TAKEOVER = 1, /* the daemon of a holder dies: L2 */
	FINALE_REJOIN = 2,   /* a node comes back blank: L4, L9 */
	FINALE_HEAD = 4,     /* the first daemon in a queue dies, or is cut off: L3 */
};

/* rate.home_lost of all daemons, where clients use rate limits. */
enum rates { RATES_NONE, RATES_CLOSED, RATES_OPEN, RATES_NEXT };
#define RATE_NAMES 4 /* the names m0 … */

/* The configuration of the last daemons, if it differs. */
enum stranger {
	STRANGER_NONE,
	STRANGER_SET,        /* another set name */
	STRANGER_NODES,      /* one node fewer */
	STRANGER_LEASE,      /* another max_lease, or another max_delay */
	STRANGER_GENERATION, /* a higher generation, with another set name or another max_lease: it takes over */
	/*
	 * A higher generation with other servers, see CHANGING THE SERVERS in redlockd(8), and perhaps another max_lease. plan.nodes counts those of both sets.
	 */
	STRANGER_FEWER,      /* the last server is removed, or the last two */
	STRANGER_MORE,       /* the last server is added, or the last two */
	STRANGER_REPLACED,   /* the last server replaces the one before it */
	STRANGER_N
};

static inline bool plan_changes_servers(const struct plan *p)
{
	return p->stranger >= STRANGER_FEWER;
}
static inline int64_t plan_changed(const struct plan *p)
{
	return p->changed ? p->changed : 1;
}
static inline bool server_is_of_both(const struct plan *p, int64_t server)
{
	return plan_changes_servers(p) && server < p->nodes - (p->stranger == STRANGER_REPLACED ? 2 : plan_changed(p));
}
/* Whether clients also list chores. */
static inline bool plan_lists_chores(const struct plan *p)
{
	return p->chores == 2;
}
/* How many nodes the smaller of both sets has. */
static inline int64_t plan_nodes_least(const struct plan *p)
{
	return p->nodes - (plan_changes_servers(p) ? plan_changed(p) : 0);
}

/* CLASS_X if a fault breaks an assumption: exclusion is not promised. */
enum fault_class plan_class(const struct plan *p);
/* How far the clocks of all nodes are set back, if equally far and nothing else breaks an assumption: the healing then leaves them so. Otherwise 0. */
int64_t plan_set_back_us(const struct plan *p);
/* rare.c: rare kinds of worlds. */
enum rare { RARE_NONE, RARE_HOUR, RARE_CROWD, RARE_BUSY, RARE_BRIEF, RARE_STORM, RARE_THRONG, RARE_N };
enum rare rare_of(uint64_t seed);
/* spread.c: kinds of worlds that widen what is drawn elsewhere. */
enum spread {
	SPREAD_EVEN, SPREAD_TERMS, SPREAD_RELOADS, SPREAD_BOUNDS, SPREAD_SETS, SPREAD_ROLLS, SPREAD_PRIORITIES,
	SPREAD_BREAKS, SPREAD_READERS, SPREAD_CIRCLES, SPREAD_GATHERS, SPREAD_RATES, SPREAD_PERMITS, SPREAD_CHORES, SPREAD_NOTES, SPREAD_INQUIRES,
	SPREAD_MEMORY, SPREAD_CUTS, SPREAD_MEETS, SPREAD_OWNERS, SPREAD_RULES, SPREAD_SLICES,
	SPREAD_N
};
enum spread spread_find(const char *word); /* SPREAD_N: there is none */
bool seed_is_spread(uint64_t seed, enum spread kind);
void spread_shape(struct plan *p);
void spread_speed(struct plan *p);
void spread_draw(struct plan *p);
bool spread_is_shown(const struct plan *p, enum spread kind); /* else the world has nothing of that kind, though it was drawn */
/* The longest lease of a LOCK without ttl=. */
static inline int64_t plan_default_lease_us(const struct plan *p)
{
	return p->reloads ? p->max_lease_us : p->lease_us;
}
#define MIN_LEASE_MS  50
#define DELAY_STEP_MS 16
static inline bool plan_mixes_delays(const struct plan *p)
{
	return p->mixed_delays && p->delay_us > 0;
}
/* max_delay of the daemons of another configuration. */
static inline int64_t plan_stranger_delay_us(const struct plan *p)
{
	return p->stranger_delay_us < 0 ? 0 : p->stranger_delay_us ? p->stranger_delay_us : p->delay_us;
}
/* One of DELAY_STEP_MS delays from 0 to the longest. */
int64_t plan_delay_us(const struct plan *p, int64_t which);
/* The ttl that a LOCK asks for instead of that lease, so that the TTL of its key tells the delay. */
int64_t plan_lock_ms(const struct plan *p, int64_t ttl_ms);
/* By its word: a rare kind, one of spread.c, or "servers", the worlds in which the set of servers changes. */
bool kind_is_known(const char *word);
bool seed_is_of(uint64_t seed, const char *word);
void rare_speed(struct plan *p); /* leases and timeouts; latencies that fit to them are drawn later */
void rare_shape(struct plan *p);
void rare_draw(struct plan *p);
/* How long a call may wait at a node behind other calls. */
int64_t plan_queue_us(const struct plan *p);

/* The quarantine of a store that may have lost its memory, by the slowest clock of the world. */
int64_t plan_quarantine_us(const struct plan *p);
/*
 * Lowers the offsets of the stores' clocks, so that any two of them stay within the tolerance as long as the world lasts, whichever two are left and however
 * short the longest lease is. Daemons refuse a store whose clock differs by more.
 */
void plan_near_clocks(struct plan *p);
/* stages.c: how long the aftermath of faults may last */
int64_t settle_us(const struct plan *p);
#define SETTLED_US (4 * SEC) /* then the healed world works for so long */

void plan_write(const struct plan *p, FILE *out);
/* Returns 0, or the number of the wrong line. */
int plan_read(struct plan *ret_plan, FILE *in);
/* draw.c: draws a plan. */
void plan_draw(struct plan *ret_plan, uint64_t seed);
/* vary.c: replaces the plan by the variation of that number: a world near it, which could have been drawn as well. */
void plan_vary(struct plan *p, uint64_t number);
/* client.c: does the client ask for grace? */
bool client_is_graced(const struct plan *p, unsigned index);
/* tests/sim/scene: each adds its scene to some worlds. */
void holder_scene_draw(struct plan *p, uint64_t seed);
void session_scene_draw(struct plan *p, uint64_t seed);
void store_scene_draw(struct plan *p, uint64_t seed);
void adoption_scene_draw(struct plan *p, uint64_t seed);
void deletion_scene_draw(struct plan *p, uint64_t seed);
void flushes_scene_draw(struct plan *p, uint64_t seed);
void memory_scene_draw(struct plan *p, uint64_t seed);
void overtaking_scene_draw(struct plan *p, uint64_t seed);
void crossing_scene_draw(struct plan *p, uint64_t seed);
void renewal_scene_draw(struct plan *p, uint64_t seed);
/* bunched.c: moves faults and jobs of some worlds close together; the first `drawn` faults are those that were drawn at random. */
void bunched_draw(struct plan *p, uint64_t seed, unsigned drawn);
/* flapping.c: lets a minority of the nodes be slow, hang or flap in some healed worlds, while many clients want one name. */
void flapping_draw(struct plan *p, uint64_t seed);
/* servers.c: lets some daemons be of the next generation, with another set of servers, in some worlds. */
void servers_draw(struct plan *p, uint64_t seed);
/* clock_step.c: sets the clocks of a minority of the nodes forward in some worlds that break no other assumption, while many nodes are out of reach. */
void clock_step_draw(struct plan *p, uint64_t seed);
void drains_draw(struct plan *p, uint64_t seed); /* after all other faults but these: */
void carries_draw(struct plan *p, uint64_t seed);
void memory_draw(struct plan *p, uint64_t seed); /* memory.c: at the end, what a daemon that is its own store can meet */
bool fault_spares_memory(const struct fault *f); /* it does nothing to such a daemon */
/* The process of a daemon stands still, and not its host. */
bool fault_pauses(const struct fault *f);
/* Something goes wrong, and other faults may be added. Where hosts stand still, clocks included, nothing else may go wrong. */
bool plan_allows_more_faults(const struct plan *p);
/*
 * Is it a fault of flapping.c, which the healing leaves? The healing cancels all other faults that are still to come, such as one of a scene between the
 * healing and the flapping. Faults of clients belong to scenes, which may end later.
 */
static inline bool fault_is_late(const struct plan *p, const struct fault *f)
{
	return f->at_us > p->length_us + settle_us(p) && fault_table[f->kind].of != OF_CLIENT;
}

#endif
