/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows the faults: the world heals, then liveness is checked; a node is lost, and a daemon dies; at last all clients leave, and nothing may be left. */
#include "daemon/core/quorum.h"
#include "tests/sim/world/world.h"

#define OWNER_FINALE (OWNERS_MAX - 1)
#define PATIENCE_US  (30 * SEC)

int64_t settle_us(const struct plan *p)
{
	return plan_quarantine_us(p) + p->max_lease_us + p->delay_us + p->grace_ms * MSEC + 3 * SEC;
}

static void stage_enter(struct world *w, enum stage stage, int64_t after_us)
{
	static const char *const word[] = {"warm", "faults", "healed", "settled", "finale", "leaving", "over"};

	world_note(w, 30, stage, "STAGE %s", word[stage]);
	w->stage = stage;
	world_at(w, &w->stage_timer, AT_STAGE, w->now + after_us);
}

static void heal(struct world *w)
{
	for (unsigned i = 0; i < w->plan->faults; i++) {
		if (fault_is_late(w->plan, &w->plan->fault[i]))
			continue;
		heap_cancel(&w->heap, &w->fault[i].timer);
		if (timer_is_set(&w->fault[i].end))
			fault_ends(w, &w->fault[i]);
	}
	for (unsigned i = 0; i < w->plan->nodes && !w->set_back_us; i++) /* else every clock is set right: a store whose clock is off would stay refused */
		server_step(&w->server[i], w->server[i].right_us - w->server[i].host.offset_us);
	for (unsigned i = 0; i < w->plan->daemons; i++)
		if (w->daemon[i].state == DAEMON_STOPPED || w->daemon[i].state == DAEMON_STOPPING)
			world_at(w, &w->daemon[i].thaw, AT_THAW, w->now);
}

/* A node that was refused for its clock may stay so while its clock is off by more than this: see RESTARTS OF REDIS in redlockd(8). */
static bool clock_hovers(const struct world *w, unsigned node)
{
	const struct plan *p = w->plan;
	int64_t least = clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) / 5 * 4 - 20 * MSEC, wall = server_wall(&w->server[node]);
	unsigned ahead = 0, behind = 0;

	for (unsigned i = 0; i < p->nodes; i++) {
		ahead += wall - server_wall(&w->server[i]) > least;
		behind += server_wall(&w->server[i]) - wall > least;
	}
	return p->nodes > 1 && 2 * (ahead > behind ? ahead : behind) >= p->nodes - 1;
}

/* L4: every daemon has joined every node. */
static void check_joined(struct world *w)
{
	unsigned hover = 0;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		hover += clock_hovers(w, i);
	for (unsigned i = 0; i < w->plan->daemons; i++) {
		int64_t joined = service_metrics(w->daemon[i].service)->value[METRIC_NODES_JOINED];

		if (joined > w->daemon[i].conf.nodes || joined + hover < w->daemon[i].conf.nodes)
			checker_fail(w, INVARIANT_L4, -1, "daemon %u has joined only %lld of %lld nodes", i, (long long)joined,
				     (long long)w->plan->nodes);
	}
}

/* --- the trials of the finale ----------------------------------------------------------------------------------------- */

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

/* A clock that was set back makes every key last that much longer, and daemons allow for drift on top. */
static int64_t stepped_us(const struct world *w)
{
	int64_t most = 0;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (w->server[i].stepped_us > most)
			most = w->server[i].stepped_us;
	return most + most / 50;
}

static void leave(struct world *w)
{
	const struct plan *p = w->plan;

	/* A client's end takes effect after a command's timeout, and the release of what it held after another one. */
	stage_enter(w, STAGE_LEAVING, settle_us(p) + p->max_lease_us + stepped_us(w) + 2 * p->timeout_us);
	for (unsigned i = 0; i < p->clients; i++)
		client_retire(&w->client[i], stream_chance(&w->finale, 50));
}

/* A client of daemon 0 holds k0 through the loss of a node. */
static void finale_begin(struct world *w)
{
	stage_enter(w, STAGE_FINALE, 0);
	w->holder = w->plan->clients ? finale_lock(w, 0) : NULL;
	finale_wait(w, 0, 1);
}

static void finale_lose_node(struct world *w)
{
	if ((w->plan->finale & FINALE_REJOIN) && w->plan->nodes >= 3) {
		server_die(&w->server[0]);
		w->tally.rejoins++;
		finale_wait(w, 500 * MSEC, 3);
	} else {
		finale_wait(w, 0, DEAD_HEAD_BEGIN);
	}
}

static void finale_wait_for_rejoin(struct world *w)
{
	server_revive(&w->server[0], REVIVE_BLANK);
	finale_wait(w, plan_quarantine_us(w->plan) + 3 * SEC, 4);
}

/* A client of daemon 1 waits for k0 when daemon 0 dies. */
static void finale_kill_daemon(struct world *w)
{
	const struct plan *p = w->plan;

	w->successor = (p->finale & FINALE_TAKEOVER) && p->daemons >= 2 && w->holder ? finale_lock(w, 1) : NULL;
	finale_wait(w, w->successor ? 2 * SEC : 0, w->successor ? 6 : 8);
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
		finale_wait(w, 0, 8);
		return;
	}
	daemon_die(&w->daemon[0]);
	late = w->ghosts_until > w->now ? w->ghosts_until - w->now : 0; /* the last renewal may still run after the death */
	/* The successor's request must have begun: it may be queued behind one of its session that waits for ever. */
	w->finale_alone = w->successor->lock && w->successor->lock->running && successor_is_alone(w);
	w->tally.takeovers++;
	/* Others may be queued before the successor; they hold the lock only briefly. */
	finale_wait(w,
		    late + p->lease_us + p->lease_us / 50 + p->delay_us + SEC + 100 * (p->latency_us + p->jitter_us) + 50 * plan_queue_us(p) +
			    500 * MSEC,
		    7);
}

static void finale_check_successor(struct world *w)
{
	if (w->successor->state == TASK_ASKING && w->successor->client->conn && w->finale_alone && successor_is_alone(w))
		checker_fail(w, INVARIANT_L2, 0, "k0: daemon 0 died and its lease is over, but daemon 1 was not granted the lock");
	daemon_start(&w->daemon[0]);
	finale_wait(w, 3 * SEC, 8);
}

static void finale_step(struct world *w)
{
	if (dead_head_step(w))
		return;
	switch (w->finale_step) {
	case 0:
		finale_begin(w);
		break;
	case 1:
		w->finale_since = w->now;
		finale_wait(w, 100 * MSEC, 2);
		break;
	case 2: /* others may hold k0, or wait for it */
		if (w->holder && w->holder->state == TASK_ASKING && w->now - w->finale_since < PATIENCE_US)
			finale_wait(w, 100 * MSEC, 2);
		else
			finale_lose_node(w);
		break;
	case 3:
		finale_wait_for_rejoin(w);
		break;
	case 4:
		check_joined(w);
		finale_wait(w, 0, DEAD_HEAD_BEGIN);
		break;
	case DEAD_HEAD_OVER:
		finale_kill_daemon(w);
		break;
	case 6:
		finale_await_successor(w);
		break;
	case 7:
		finale_check_successor(w);
		break;
	default:
		leave(w);
		break;
	}
}

/* --- what may be left ------------------------------------------------------------------------------------------------- */

static void check_gauge(struct world *w, unsigned daemon, enum metric metric, int64_t want)
{
	int64_t value = service_metrics(w->daemon[daemon].service)->value[metric];

	if (value != want)
		checker_fail(w, INVARIANT_S21, -1, "daemon %u: %s is %lld when all clients have left, not %lld", daemon,
			     metric_table[metric].name, (long long)value, (long long)want);
}

static void check_key(void *context, struct span key, struct span value, int64_t expires_ms)
{
	struct world *w = context;

	/* A queue whose last withdrawal was lost expires by itself, after three times the time of a ticket. */
	if (span_starts(key, SPAN("redlockd:lock:q:")) && expires_ms > 0)
		return;
	if (!span_equal(key, SPAN("redlockd:lock:!meta")) && !span_equal(key, SPAN("redlockd:lock:!fence")))
		checker_fail(w, INVARIANT_L8, -1, "a key is left at the end: %.*s = %.*s until %lld", (int)key.n, key.p, (int)value.n,
			     value.p, (long long)expires_ms);
}

static void check_leftovers(struct world *w)
{
	for (unsigned i = 0; i < w->plan->daemons; i++) {
		check_gauge(w, i, METRIC_SESSIONS, 0);
		check_gauge(w, i, METRIC_WAITERS, 0);
		check_gauge(w, i, METRIC_LOCKS_HELD, 0);
		check_gauge(w, i, METRIC_DEBTS, 0);
		check_gauge(w, i, METRIC_NAMES, 0);
		check_gauge(w, i, METRIC_TIMERS, w->daemon[i].conf.nodes); /* one for the health of each node */
	}
	for (unsigned i = 0; i < w->plan->nodes; i++)
		sim_node_each(w->server[i].node, server_wall(&w->server[i]), check_key, w);
	check_joined(w);
}

void stage_fired(struct world *w)
{
	const struct plan *p = w->plan;

	switch (w->stage) {
	case STAGE_WARM:
		stage_enter(w, STAGE_FAULTS, p->length_us - w->now);
		break;
	case STAGE_FAULTS:
		heal(w);
		stage_enter(w, STAGE_HEALED, settle_us(p));
		break;
	case STAGE_HEALED:
		check_joined(w);
		stage_enter(w, STAGE_SETTLED, SETTLED_US);
		break;
	case STAGE_SETTLED:
	case STAGE_FINALE:
		finale_step(w);
		break;
	case STAGE_LEAVING:
		check_leftovers(w);
		stage_enter(w, STAGE_OVER, 0);
		break;
	case STAGE_OVER:
		break;
	}
}
