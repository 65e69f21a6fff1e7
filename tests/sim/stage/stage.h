/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stages of a world, and what happens to it from outside in each: faults begin and end, the world heals, the finale loses a node and daemons, all clients
 * leave. A stage ends when its timer rings.
 */
#ifndef SIM_STAGE_H
#define SIM_STAGE_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct task;
struct fault;
struct active_fault;

enum stage {
	STAGE_WARM, /* the daemons join the stores */
	STAGE_FAULTS,
	STAGE_HEALED,  /* no more faults; their aftermath passes */
	STAGE_SETTLED, /* from here on liveness is checked */
	STAGE_FINALE,
	STAGE_LEAVING, /* all clients have left */
	STAGE_OVER,
};

/* stages.c */
void stage_enter(struct world *w, enum stage stage, int64_t after_us);
void stage_fired(struct world *w);
void stage_leave(struct world *w); /* all clients leave */

/* fault.c: what a fault does when it begins and when it ends. */
void fault_begin(struct world *w, struct active_fault *f);
void fault_ends(struct world *w, struct active_fault *f);

/* node_fault.c: the same for a fault of a server. False: there was nothing to break. */
bool node_fault(struct world *w, const struct fault *f);
void node_fault_ends(struct world *w, const struct fault *f);

/* finale.c: the trials in the healed world, step by step. */
enum finale_at {
	STEP_BEGIN,
	STEP_ASK,
	STEP_HOLD,
	STEP_REVIVE_NODE,
	STEP_CHECK_NODE,
	STEP_DEAD_HEAD, /* dead_head.c has steps of its own from STEP_OVER on */
	STEP_TAKE_OVER,
	STEP_KILL_DAEMON,
	STEP_CHECK_SUCCESSOR,
	STEP_LEAVE,
	STEP_OVER
};
void finale_step(struct world *w);
void finale_wait(struct world *w, int64_t us, int step); /* then that step, after so long */
struct task *finale_lock(struct world *w, unsigned daemon); /* a client of that daemon asks for k0 and waits for ever; NULL: there is none */

/* dead_head.c: the trial of a dead head, from STEP_DEAD_HEAD on; STEP_TAKE_OVER follows. */
bool dead_head_step(struct world *w);

/* leftovers.c: what must hold when all is healed, and when all have left. */
void check_joined(struct world *w);
void check_leftovers(struct world *w);

#endif
