/* SPDX-License-Identifier: BSD-2-Clause */
/* A job of a client, step by step: ask for a lock, use what it protects, release it in one of many ways. */
#include "tests/sim/world/world.h"

struct task *task_add(struct world *w, const struct job *job)
{
	struct task *t = &w->task[w->tasks];

	t->job = *job;
	t->index = w->tasks++;
	t->client = &w->client[job->client];
	return t;
}

static void task_set_hold(struct task *t, struct hold *h)
{
	if (t->hold)
		t->hold->uses--;
	if (h)
		h->uses++;
	t->hold = h;
}

void task_over(struct task *t)
{
	t->state = TASK_DONE;
	t->lock = NULL;
	task_set_hold(t, NULL);
	heap_cancel(&t->client->world->heap, &t->timer);
}

static void task_begin(struct task *t)
{
	struct world *w = t->client->world;

	if (!t->client->conn || t->client->conn->left || t->client->state != CLIENT_RUNNING) {
		task_over(t);
		return;
	}
	client_lock(t, t->job.wait_ms);
	t->state = TASK_ASKING;
	if (t->job.cancel_us && t->job.tagged)
		world_at(w, &t->timer, AT_TASK, w->now + t->job.cancel_us);
}

static void task_next_tick(struct task *t)
{
	struct world *w = t->client->world;

	world_at(w, &t->timer, AT_TASK, w->now + t->job.hold_us / t->ticks + 1);
}

void task_answered(struct task *t, const struct request_sim *q, struct hold *h)
{
	if (t->state == TASK_ASKING && q == t->lock) {
		if (!h) {
			task_over(t);
			return;
		}
		task_set_hold(t, h);
		t->mine = 1;
		t->state = TASK_HOLDING;
		t->ticks = t->job.acts + 1;
		/* A grant that arrived late proves nothing until a CHECK. */
		if (!hold_is_believed(h))
			client_check(t);
		task_next_tick(t);
	} else if (h && h == t->hold) {
		t->mine++;
	}
}

static void task_act(struct task *t)
{
	if (t->hold && !hold_is_acted_with(t->hold))
		resource_visit(t->client->world, t, t->hold->fence);
}

void task_checked(struct task *t, const struct request_sim *q, bool held)
{
	if (t->state == TASK_HOLDING && q->ask == ASK_CHECK && held && hold_is_believed(t->hold))
		task_act(t);
}

/* Releases the name as often as the task has locked it. */
static void task_unlock(struct task *t, enum ending how)
{
	for (; t->mine > 1; t->mine--)
		client_unlock(t, END_UNLOCK);
	t->state = TASK_ENDING;
	client_unlock(t, how);
}

void task_end(struct task *t, enum ending how)
{
	struct sim_client *c = t->client;

	if (t->state != TASK_HOLDING || t->hold->conn != c->conn) {
		task_over(t);
		return;
	}
	switch (how) {
	case END_QUIT:
		client_quit(c);
		task_over(t);
		break;
	case END_CLOSE:
	case END_HALF_CLOSE:
		task_over(t);
		client_leave(c, how == END_CLOSE ? LEAVE_CLOSE : LEAVE_HALF);
		break;
	case END_LEAVE:
		task_over(t);
		break;
	default:
		task_unlock(t, how);
		break;
	}
}

static void task_use(struct task *t)
{
	bool connected = t->hold->conn == t->client->conn;

	if (t->job.careless || (!connected && hold_is_believed(t->hold)))
		task_act(t);
	else if (connected)
		client_check(t);
	if (connected && (t->tick == t->job.extend || t->job.extend < 0))
		client_extend(t);
	if (connected && t->tick == t->job.reenter)
		client_lock(t, 0);
}

static void task_tick(struct task *t)
{
	t->tick++;
	if (t->hold->lost && !t->job.careless)
		t->ticks = t->tick; /* the task ends, and only sends its UNLOCK */
	if (t->tick >= t->ticks) {
		task_end(t, (enum ending)t->job.ending);
		return;
	}
	task_use(t);
	task_next_tick(t);
}

void task_fired(struct task *t)
{
	struct sim_client *c = t->client;

	if (c->state == CLIENT_STALLED) {
		world_at(c->world, &t->timer, AT_TASK, c->thaw_at + 1);
		return;
	}
	switch (t->state) {
	case TASK_IDLE:
		task_begin(t);
		break;
	case TASK_ASKING:
		client_ask(c, ASK_CANCEL, NULL, "CANCEL @t%u", t->lock->number);
		break;
	case TASK_HOLDING:
		task_tick(t);
		break;
	case TASK_ENDING:
	case TASK_DONE:
		break;
	}
}
