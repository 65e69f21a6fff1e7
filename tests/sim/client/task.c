/* SPDX-License-Identifier: BSD-2-Clause */
/* A job of a client, step by step: ask for a lock, use what it protects, release it in one of many ways. */
#include "tests/sim/world/world.h"

struct run *run_add(struct world *w, const struct job *job)
{
	struct run *r = &w->run[w->runs];

	r->job = *job;
	r->index = w->runs++;
	r->client = &w->client[job->client];
	return r;
}

static void run_set_hold(struct run *r, struct hold *h)
{
	if (r->hold)
		r->hold->uses--;
	if (h)
		h->uses++;
	r->hold = h;
}

void run_over(struct run *r)
{
	r->state = RUN_DONE;
	r->lock = NULL;
	run_set_hold(r, NULL);
	heap_cancel(&r->client->world->heap, &r->timer);
}

static void run_begin(struct run *r)
{
	struct world *w = r->client->world;

	if (!r->client->conn || r->client->conn->left || r->client->state != CLIENT_RUNNING) {
		run_over(r);
		return;
	}
	client_lock(r, r->job.wait_ms);
	r->state = RUN_ASKING;
	if (r->job.cancel_us && r->job.tagged)
		world_at(w, &r->timer, AT_RUN, w->now + r->job.cancel_us);
}

static void run_next_tick(struct run *r)
{
	struct world *w = r->client->world;

	world_at(w, &r->timer, AT_RUN, w->now + r->job.hold_us / r->ticks + 1);
}

void run_answered(struct run *r, const struct request_sim *q, struct hold *h)
{
	if (r->state == RUN_ASKING && q == r->lock) {
		if (!h) {
			run_over(r);
			return;
		}
		run_set_hold(r, h);
		r->mine = 1;
		r->state = RUN_HOLDING;
		r->ticks = r->job.acts + 1;
		/* A grant that arrived late proves nothing until a CHECK. */
		if (!hold_is_believed(h))
			client_check(r);
		run_next_tick(r);
	} else if (h && h == r->hold) {
		r->mine++;
	}
}

static void run_act(struct run *r)
{
	if (r->hold && !hold_is_acted_with(r->hold))
		resource_visit(r->client->world, r, r->hold->fence);
}

void run_checked(struct run *r, const struct request_sim *q, bool held)
{
	if (r->state == RUN_HOLDING && q->ask == ASK_CHECK && held && hold_is_believed(r->hold))
		run_act(r);
}

/* Releases the name as often as the task has locked it. */
static void run_unlock(struct run *r, enum ending how)
{
	for (; r->mine > 1; r->mine--)
		client_unlock(r, END_UNLOCK);
	r->state = RUN_ENDING;
	client_unlock(r, how);
}

void run_end(struct run *r, enum ending how)
{
	struct sim_client *c = r->client;

	if (r->state != RUN_HOLDING || r->hold->conn != c->conn) {
		run_over(r);
		return;
	}
	switch (how) {
	case END_QUIT:
		client_quit(c);
		run_over(r);
		break;
	case END_CLOSE:
	case END_HALF_CLOSE:
		run_over(r);
		client_leave(c, how == END_CLOSE ? LEAVE_CLOSE : LEAVE_HALF);
		break;
	case END_LEAVE:
		run_over(r);
		break;
	default:
		run_unlock(r, how);
		break;
	}
}

static void run_use(struct run *r)
{
	bool connected = r->hold->conn == r->client->conn;

	if (r->job.careless || (!connected && hold_is_believed(r->hold)))
		run_act(r);
	else if (connected)
		client_check(r);
	if (connected && (r->tick == r->job.extend || r->job.extend < 0))
		client_extend(r);
	if (connected && r->tick == r->job.reenter)
		client_lock(r, 0);
}

static void run_tick(struct run *r)
{
	r->tick++;
	if (r->hold->lost && !r->job.careless)
		r->ticks = r->tick; /* the task ends: it only sends its UNLOCK */
	if (r->tick >= r->ticks) {
		run_end(r, (enum ending)r->job.ending);
		return;
	}
	run_use(r);
	run_next_tick(r);
}

void run_fired(struct run *r)
{
	struct sim_client *c = r->client;

	if (c->state == CLIENT_STALLED) {
		world_at(c->world, &r->timer, AT_RUN, c->thaw_at + 1);
		return;
	}
	switch (r->state) {
	case RUN_IDLE:
		run_begin(r);
		break;
	case RUN_ASKING:
		client_ask(c, ASK_CANCEL, NULL, "CANCEL @t%u", r->lock->number);
		break;
	case RUN_HOLDING:
		run_tick(r);
		break;
	case RUN_ENDING:
	case RUN_DONE:
		break;
	}
}
