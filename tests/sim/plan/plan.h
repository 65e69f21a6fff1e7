/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan is everything that is decided before a run: the shape of the world, the schedule of faults, the workload. The same plan gives the same
 * run. It is plain text on disk, one fault or job a line, so that what a shrunk failure needs can be read.
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
#define CLIENTS_COMMON 30 /* more only in crowds */
#define NAMES_MAX   8
#define OWNERS_MAX  3

enum fault_kind {
#define FAULT(id, ...) FAULT_##id,
#include "tests/sim/plan/fault.def"
#undef FAULT
	FAULT_N,
	FAULT_DRAWN = FAULT_CLIENT_HALF_CLOSE + 1 /* those that chance brings about; those behind only come in scenes */
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

struct fault {
	enum fault_kind kind;
	int64_t at_us, for_us, a, b, x;
};

/* How a job ends the hold that it got. */
enum ending {
	END_UNLOCK,
	END_FENCE, /* UNLOCK fence=, after one with the fence of an older grant */
	END_SYNC,  /* UNLOCK sync=yes */
	END_KEEP,  /* UNLOCK keep= */
	END_QUIT,
	END_CLOSE,
	END_HALF_CLOSE,
	END_LEAVE, /* nothing: it ends by itself (renew=no) */
	END_N
};

#define JOB_FIELDS(row)                                                                                                          \
	row(at_us) row(client) row(name) row(owner) row(wait_ms) /* -1: for ever */ row(ttl_ms) row(renew) row(tagged)           \
		row(hold_us) row(acts) /* accesses to the resource while holding */                                              \
		row(careless)          /* acts without a look at its deadline: tokens alone protect */                           \
		row(cancel_us) row(extend) /* at which act; 0: never; -1: at each, in turns to extend_ms and to ttl_ms */ row(extend_ms) row(reenter) row(ending)
struct job {
#define JOB_ROW(field) int64_t field;
	JOB_FIELDS(JOB_ROW)
#undef JOB_ROW
};

#define PLAN_FIELDS(row)                                                                                                         \
	row(seed) row(nodes) row(daemons) row(clients) row(names) row(trust) row(lease_us) row(max_lease_us)                     \
		row(delay_us) /* of every LOCK */ row(timeout_us) row(latency_us) row(jitter_us) row(client_latency_us)          \
			row(node_offset_us) row(daemon_offset_us) row(drift_ppm) row(remote_percent) row(fragment_percent)       \
				row(heartbeat_ms) row(ghost_percent)                                                     \
					row(heard_percent) /* of what nodes publish; 0: nothing, for ever */             \
					row(echo_percent)  /* of it is late, or comes twice */                           \
					row(grace_ms)      /* what clients ask for, if they do; 0: none */               \
					row(stranger)      /* enum stranger */                                           \
					row(stranger_lease_us) /* of a higher generation and the same set; 0: another set */ \
				row(window)        /* calls that a daemon leaves unanswered per node; 0: the usual */ \
		row(warm_us) /* when faults and work begin */                                                                    \
		row(length_us)                                                    /* when all faults are over */                 \
		row(finale)                                                       /* bits: what is tried in the healed world */ \
		row(chatter_ms)                                                   /* clients talk beside their work about so often; 0: they do not */ \
		row(foreign)                                                      /* redis.foreign: yes */                      \
		row(storm) /* names that are asked for at a time; 0: there are no storms */                                       \
		row(service_us) /* that each call takes a node, one after the other; 0: none */
struct plan {
#define PLAN_ROW(field) int64_t field;
	PLAN_FIELDS(PLAN_ROW)
#undef PLAN_ROW
	struct fault fault[FAULTS_MAX];
	struct job job[JOBS_MAX];
	unsigned faults, jobs;
};

enum finale {
	FINALE_TAKEOVER = 1, /* a daemon that holds dies: L2 */
	FINALE_REJOIN = 2,   /* a node comes back blank: L4, L9 */
	FINALE_HEAD = 4,     /* who is first in line dies, or is cut off: L3 */
};

/* How the last daemon is configured. */
enum stranger {
	STRANGER_NONE,
	STRANGER_SET,        /* another set name */
	STRANGER_NODES,      /* one node less */
	STRANGER_LEASE,      /* another max_lease */
	STRANGER_GENERATION, /* another set name, or another max_lease, and a higher generation: it takes over */
	STRANGER_N
};

/* Under X exclusion is not promised. */
enum fault_class plan_class(const struct plan *p);
/* How far the clocks of all nodes are set back, where nothing else breaks an assumption: there they are left so when the world heals. 0: not so. */
int64_t plan_set_back_us(const struct plan *p);
/* rare.c: kinds of worlds that are few. */
enum rare { RARE_NONE, RARE_HOUR, RARE_CROWD, RARE_BUSY, RARE_BRIEF, RARE_STORM, RARE_N };
enum rare rare_of(uint64_t seed);
enum rare rare_find(const char *word); /* RARE_NONE: there is no such kind */
void rare_speed(struct plan *p); /* leases and timeouts; the latencies that fit to them are drawn after that */
void rare_shape(struct plan *p);
void rare_draw(struct plan *p);
/* How long a call may wait at a node behind those that are under way there. */
int64_t plan_queue_us(const struct plan *p);

/* How long a store that may have lost memory is not counted, as the slowest clock of this world sees it. */
int64_t plan_quarantine_us(const struct plan *p);
/*
 * Clocks of stores that differ by more are refused. Here two stay within it for as long as the world lasts, whichever two are left: also with leases for
 * which that is less, or more, than common offsets.
 */
void plan_near_clocks(struct plan *p);
/* How long what faults left behind may last; finale.c */
int64_t settle_us(const struct plan *p);
#define SETTLED_US (4 * SEC) /* then the healed world is at work for so long */

void plan_write(const struct plan *p, FILE *out);
/* 0; or the number of the line that is wrong. */
int plan_read(struct plan *ret_plan, FILE *in);
/* swarm.c: draws a plan. */
void plan_draw(struct plan *ret_plan, uint64_t seed);
/* client.c: does it ask for grace? */
bool client_is_graced(const struct plan *p, unsigned index);
/* scene.c, session_scene.c, adopt_scene.c, deletion_scene.c, store_scene.c, memory_scene.c, overtake_scene.c, crossing_scene.c, flushed_scene.c: add to some. */
void scene_draw(struct plan *p, uint64_t seed);
void session_scene_draw(struct plan *p, uint64_t seed);
void store_scene_draw(struct plan *p, uint64_t seed);
void adopt_scene_draw(struct plan *p, uint64_t seed);
void deletion_scene_draw(struct plan *p, uint64_t seed);
void flushed_scene_draw(struct plan *p, uint64_t seed);
void memory_scene_draw(struct plan *p, uint64_t seed);
void overtake_scene_draw(struct plan *p, uint64_t seed);
void crossing_scene_draw(struct plan *p, uint64_t seed);
/* tight.c: the first `drawn` faults are those that chance has spread over the world. */
void tight_draw(struct plan *p, uint64_t seed, unsigned drawn);
/* flap.c: lets a minority of the nodes be slow, hang or flap in some worlds once they are healed, while many want one name. */
void flap_draw(struct plan *p, uint64_t seed);
/* step.c: sets the clocks of a minority of the nodes forward in some worlds that break no other assumption, while many a node is out of reach. */
void step_draw(struct plan *p, uint64_t seed);
/* Whether the fault belongs to that: the healing leaves it. */
static inline bool fault_is_late(const struct plan *p, const struct fault *f)
{
	return f->at_us > p->length_us && fault_table[f->kind].of != OF_CLIENT; /* a scene may end later than the faults do */
}

#endif
