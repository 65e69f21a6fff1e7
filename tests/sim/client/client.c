/* SPDX-License-Identifier: BSD-2-Clause */
/* How a client connects, sends heartbeats, is stopped, dies and leaves. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

static void client_draw_host(struct sim_client *c, const struct plan *p, unsigned index)
{
	struct stream hosts;

	c->index = index;
	stream_init(&hosts, (uint64_t)p->seed, DRAW_HOSTS, 200 + index);
	c->remote = stream_chance(&hosts, (unsigned)p->remote_percent);
	c->is_unix = !c->remote && stream_chance(&hosts, 60);
	c->own.ppm = stream_either(&hosts, p->drift_ppm);
	c->own.base_us = stream_range(&hosts, SEC, 1000000 * SEC);
	c->graced = p->grace_ms && (stream_chance(&hosts, 70) || (p->cuts && index < REPEATERS));
}

bool client_is_graced(const struct plan *p, unsigned index)
{
	struct sim_client c;

	client_draw_host(&c, p, index);
	return c.graced;
}

void client_init(struct sim_client *c, struct world *w, unsigned index)
{
	const struct plan *p = w->plan;

	c->world = w;
	c->daemon = &w->daemon[index % p->daemons];
	stream_init(&c->stream, (uint64_t)p->seed, DRAW_CLIENT, index);
	client_draw_host(c, p, index);
	TAILQ_INIT(&c->inbox);
	world_at(w, &c->timer, AT_CLIENT, stream_range(&c->stream, 0, 20 * MSEC));
	side_requests_begin(c);
	reader_begin(c);
	nester_begin(c);
	rater_begin(c);
	permitter_begin(c);
	worker_begin(c);
	repeater_begin(c);
}

static void inbox_drop(struct sim_client *c)
{
	struct packet *p;

	while ((p = TAILQ_FIRST(&c->inbox))) {
		TAILQ_REMOVE(&c->inbox, p, in_inbox);
		free(p);
	}
}

void client_release(struct sim_client *c)
{
	inbox_drop(c);
}

struct instant client_boot(const struct sim_client *c)
{
	return host_boot(c->remote ? &c->own : &c->daemon->host, c->world->now);
}

static void client_connect(struct sim_client *c)
{
	int64_t beat = c->world->plan->heartbeat_ms;
	struct request_sim *q;

	c->conn = conn_open(c);
	if (c->graced)
		resume_greet(c);
	else if (beat && (q = client_ask(c, ASK_OTHER, NULL, "HELLO 1 name=c%u heartbeat=%lldms", c->index, (long long)beat)))
		q->beat_us = beat * MSEC;
	else if (stream_chance(&c->stream, 30))
		client_ask(c, ASK_OTHER, NULL, "HELLO 1");
}

void client_fired(struct sim_client *c)
{
	struct world *w = c->world;
	int64_t beat = w->plan->heartbeat_ms;

	if (c->state != CLIENT_RUNNING)
		return; /* client_thaw sets the timer again */
	if (c->conn) {
		client_ask(c, ASK_OTHER, NULL, stream_chance(&c->stream, 90) ? "PING" : "PING\r");
	} else if (daemon_is_up(c->daemon)) {
		client_connect(c);
	} else {
		world_at(w, &c->timer, AT_CLIENT, w->now + stream_range(&c->stream, 20 * MSEC, 200 * MSEC));
		return;
	}
	if (beat)
		world_at(w, &c->timer, AT_CLIENT, w->now + beat * MSEC / 3);
}

/* --- packets --------------------------------------------------------------------------------------------------------- */

static void tasks_each(struct sim_client *c, void (*visit)(struct task *t))
{
	for (unsigned i = 0; i < c->world->tasks; i++)
		if (c->world->task[i].client == c)
			visit(&c->world->task[i]);
}

/* A client that can resume its session asks again for what it waited for: it may still have its place in the queue. */
static void task_lost_conn(struct task *t)
{
	struct sim_client *c = t->client;

	if (t->state == TASK_ASKING && c->secret[0] && c->state == CLIENT_RUNNING && stream_chance(&c->stream, 80)) {
		t->state = TASK_IDLE;
		t->lock = NULL;
		world_at(c->world, &t->timer, AT_TASK, c->world->now + stream_skewed(&c->stream, 5 * MSEC, 700 * MSEC));
		return;
	}
	if (t->state == TASK_ASKING || t->state == TASK_ENDING)
		task_over(t);
}

/* Its requests are not answered any more, but it goes on believing what it may believe. */
void client_lost_conn(struct sim_client *c)
{
	struct conn *conn = c->conn;

	if (!conn)
		return;
	conn->client_open = false;
	c->conn = NULL;
	tasks_each(c, task_lost_conn);
	if (c->state != CLIENT_GONE)
		world_at(c->world, &c->timer, AT_CLIENT, c->world->now + stream_skewed(&c->stream, MSEC, 500 * MSEC));
}

static void client_read(struct sim_client *c, struct conn *conn, const struct packet *p)
{
	char *lf;

	buf_append(&conn->out, p->bytes, p->n);
	while (buf_length(&conn->out) > 0 && (lf = memchr(buf_begin(&conn->out), '\n', buf_length(&conn->out)))) {
		char line[512];
		size_t n = (size_t)(lf - buf_begin(&conn->out));
		size_t kept = n < sizeof(line) ? n : sizeof(line) - 1;

		memcpy(line, buf_begin(&conn->out), kept);
		line[kept] = '\0';
		buf_consume(&conn->out, n + 1);
		client_hear(c, conn, line);
	}
}

void client_on_packet(struct packet *p)
{
	struct conn *conn = p->conn;
	struct sim_client *c = conn->client;

	if (c->state == CLIENT_STALLED) {
		TAILQ_INSERT_TAIL(&c->inbox, p, in_inbox);
		return;
	}
	if (c->state == CLIENT_RUNNING && conn == c->conn) {
		if (p->kind == PACKET_BYTES)
			client_read(c, conn, p);
		else if (p->kind == PACKET_END)
			client_lost_conn(c);
	}
	free(p);
}

/* --- what happens to it ---------------------------------------------------------------------------------------------- */

bool client_host_is_halted(const struct sim_client *c)
{
	return !c->remote && c->daemon->halted;
}

void client_stall(struct sim_client *c, int64_t for_us)
{
	if (c->state != CLIENT_RUNNING)
		return;
	world_note(c->world, 20, c->index, "c%u is stopped for %lld us", c->index, (long long)for_us);
	c->state = CLIENT_STALLED;
	c->thaw_at = c->world->now + for_us;
	world_at(c->world, &c->thaw, AT_CLIENT_THAW, c->thaw_at);
}

void client_thaw(struct sim_client *c)
{
	struct packet *p;

	if (c->state == CLIENT_GONE)
		return;
	if (client_host_is_halted(c)) {
		c->thaw_at = later(c->daemon->thaw_at, c->world->now + 1);
		world_at(c->world, &c->thaw, AT_CLIENT_THAW, c->thaw_at);
		return;
	}
	world_note(c->world, 21, c->index, "c%u goes on", c->index);
	c->state = CLIENT_RUNNING;
	while ((p = TAILQ_FIRST(&c->inbox))) {
		TAILQ_REMOVE(&c->inbox, p, in_inbox);
		client_on_packet(p);
	}
	world_at(c->world, &c->timer, AT_CLIENT, c->world->now + 1);
}

static void task_abandon(struct task *t)
{
	if (t->state != TASK_IDLE)
		task_over(t);
}

void client_die(struct sim_client *c, int64_t for_us)
{
	if (c->state == CLIENT_GONE || c->state == CLIENT_DEAD)
		return;
	world_note(c->world, 22, c->index, "c%u dies", c->index);
	client_disclaim_all(c);
	if (c->conn)
		conn_leave(c->conn, LEAVE_DIE);
	c->conn = NULL;
	c->secret[0] = '\0';
	inbox_drop(c);
	tasks_each(c, task_abandon);
	c->state = CLIENT_DEAD;
	c->thaw_at = c->world->now + for_us;
	world_at(c->world, &c->thaw, AT_CLIENT_THAW, c->thaw_at);
}

void client_leave(struct sim_client *c, enum leave how)
{
	if (c->state != CLIENT_RUNNING || !c->conn)
		return;
	world_note(c->world, 23, how, "c%u leaves: %d", c->index, (int)how);
	session_disclaim_all(c);
	conn_leave(c->conn, how);
	if (how != LEAVE_HALF)
		client_lost_conn(c);
}

/* Once it has sent QUIT it claims nothing any more. */
void client_quit(struct sim_client *c)
{
	if (!client_ask(c, ASK_QUIT, NULL, "QUIT"))
		return;
	session_disclaim_all(c);
}

void client_retire(struct sim_client *c, bool quit)
{
	/* A QUIT has no tag, and would wait behind an untagged request that waits for ever. */
	quit &= c->state == CLIENT_RUNNING && c->conn && !c->conn->left && TAILQ_EMPTY(&c->conn->open);
	if (quit)
		client_quit(c);
	client_disclaim_all(c);
	tasks_each(c, task_over);
	if (c->conn && !quit)
		conn_leave(c->conn, LEAVE_CLOSE);
	inbox_drop(c);
	heap_cancel(&c->world->heap, &c->timer);
	heap_cancel(&c->world->heap, &c->thaw);
	heap_cancel(&c->world->heap, &c->side_timer);
	heap_cancel(&c->world->heap, &c->reader_timer);
	heap_cancel(&c->world->heap, &c->nest.timer);
	heap_cancel(&c->world->heap, &c->repeats.timer);
	c->state = CLIENT_GONE;
}
