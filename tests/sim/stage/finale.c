/* SPDX-License-Identifier: BSD-2-Clause */
/* The trials in the healed world: a node is lost and comes back blank (L4, L9), the head of a queue dies (dead_head.c), the daemon of a holder dies (L2). */
#include "tests/sim/world/world.h"

#define OWNER_FINALE (OWNERS_MAX - 1)
#define PATIENCE_US  (30 * SEC)

struct task *finale_lock(struct world *w, unsigned daemon)
{
	const struct plan *p = w->plan;
	struct job job = {.owner = OWNER_FINALE,
			  .wait_ms = -1,
			  .ttl_ms = p->lease_us / MSEC,
			  .renew = 1,
			  .tagged = 1,
			  .hold_us = 1000 * SEC};

	for (unsigned i = 0; i < p->clients; i++) {
		struct task *t;

		if (w->client[i].daemon->index != daemon || !w->client[i].conn || w->client[i].state != CLIENT_RUNNING)
			continue;
		job.client = i;
		t = task_add(w, &job);
		task_fired(t);
		return t;
	}
	return NULL;
}

void finale_wait(struct world *w, int64_t us, int step)
{
	w->finale_step = step;
	world_at(w, &w->stage_timer, AT_STAGE, w->now + us);
}

/* A client of daemon 0 holds k0 through the loss of a node. */
static void finale_begin(struct world *w)
{
	stage_enter(w, STAGE_FINALE, 0);
	w->holder = w->plan->clients ? finale_lock(w, 0) : NULL;
	finale_wait(w, 0, STEP_ASK);
}

static void finale_lose_node(struct world *w)
{
	if ((w->plan->finale & FINALE_REJOIN) && w->plan->nodes >= 3) {
		server_die(&w->server[0]);
		w->tally.rejoins++;
		finale_wait(w, 500 * MSEC, STEP_REVIVE_NODE);
	} else {
		finale_wait(w, 0, STEP_DEAD_HEAD);
	}
}

static void finale_wait_for_rejoin(struct world *w)
{
	server_revive(&w->server[0], REVIVE_BLANK);
	finale_wait(w, plan_quarantine_us(w->plan) + 3 * SEC, STEP_CHECK_NODE);
}

/* A client of daemon 1 waits for k0 when daemon 0 dies. */
static void finale_kill_daemon(struct world *w)
{
	const struct plan *p = w->plan;

	w->successor = (p->finale & FINALE_TAKEOVER) && p->daemons >= 2 && w->holder ? finale_lock(w, 1) : NULL;
	finale_wait(w, w->successor ? 2 * SEC : 0, w->successor ? STEP_KILL_DAEMON : STEP_LEAVE);
}

/* L2 is checked only when nobody else wants k0: another waiter may be granted it first. */
static bool successor_is_alone(const struct world *w)
{
	for (unsigned d = 0; d < w->plan->daemons; d++) {
		const struct request_sim *q;

		if (w->checker.lease[d][0].held || w->checker.detached_until[d][0] > w->now)
			return false;
		TAILQ_FOREACH(q, &w->checker.waiters[d][0], in_waiters)
		{
			if (q != w->successor->lock)
				return false;
		}
	}
	return true;
}

static void finale_await_successor(struct world *w)
{
	const struct plan *p = w->plan;
	int64_t late;

	if (w->holder->state != TASK_HOLDING) {
		finale_wait(w, 0, STEP_LEAVE);
		return;
	}
	daemon_die(&w->daemon[0]);
	late = w->ghosts_until > w->now ? w->ghosts_until - w->now : 0; /* the last renewal may still run after the death of the daemon */
	/* The successor's request must have begun: it may be queued behind one of its session that waits for ever. */
	w->finale_alone = w->successor->lock && w->successor->lock->running && successor_is_alone(w);
	w->finale_fence = w->checker.returned[0];
	w->tally.takeovers++;
	/* Others may be queued before the successor; they hold the lock only briefly. */
	finale_wait(w,
		    late + p->lease_us + p->lease_us / 50 + p->delay_us + SEC + 100 * (p->latency_us + p->jitter_us) + 50 * plan_queue_us(p) +
			    500 * MSEC,
		    STEP_CHECK_SUCCESSOR);
}

/* Another client may have been granted it since, and gone away: its session holds it for a while. */
static void finale_check_successor(struct world *w)
{
	if (w->successor->state == TASK_ASKING && w->successor->client->conn && w->finale_alone && successor_is_alone(w) &&
	    w->checker.returned[0] == w->finale_fence)
		checker_fail(w, INVARIANT_L2, 0, "k0: daemon 0 died and its lease is over, but daemon 1 was not granted the lock");
	daemon_start(&w->daemon[0]);
	finale_wait(w, 3 * SEC, STEP_LEAVE);
}

void finale_step(struct world *w)
{
	if (dead_head_step(w))
		return;
	switch (w->finale_step) {
	case STEP_BEGIN:
		finale_begin(w);
		break;
	case STEP_ASK:
		w->finale_since = w->now;
		finale_wait(w, 100 * MSEC, STEP_HOLD);
		break;
	case STEP_HOLD: /* others may hold k0, or wait for it */
		if (w->holder && w->holder->state == TASK_ASKING && w->now - w->finale_since < PATIENCE_US)
			finale_wait(w, 100 * MSEC, STEP_HOLD);
		else
			finale_lose_node(w);
		break;
	case STEP_REVIVE_NODE:
		finale_wait_for_rejoin(w);
		break;
	case STEP_CHECK_NODE:
		check_joined(w);
		finale_wait(w, 0, STEP_DEAD_HEAD);
		break;
	case STEP_TAKE_OVER:
		finale_kill_daemon(w);
		break;
	case STEP_KILL_DAEMON:
		finale_await_successor(w);
		break;
	case STEP_CHECK_SUCCESSOR:
		finale_check_successor(w);
		break;
	default:
		stage_leave(w);
		break;
	}
}
