/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes between a client and its daemon. The daemon's end cuts lines by daemon/net/lines.c, as the product does. */
#include "tests/sim/world/world.h"

#include "daemon/net/lines.h"

#include <stdlib.h>

#define LINE_BYTES 8192

/* --- packets --------------------------------------------------------------------------------------------------------- */

static int64_t conn_latency(struct conn *c, struct stream *s)
{
	int64_t most = c->world->plan->client_latency_us;

	return 2 + stream_skewed(s, most / 4, most);
}

static struct packet *packet_new(struct conn *c, enum packet_kind kind, enum direction direction, const char *p, size_t n)
{
	struct packet *packet = calloc(1, sizeof(*packet) + n);

	if (!packet)
		abort();
	packet->conn = c;
	packet->kind = kind;
	packet->direction = direction;
	packet->run = c->run;
	packet->n = n;
	if (n)
		memcpy(packet->bytes, p, n);
	return packet;
}

/* Packets arrive in order, and not before a stall is over. */
static void packet_send(struct packet *packet, int64_t depart)
{
	struct conn *c = packet->conn;
	int64_t at = depart + conn_latency(c, packet->direction == TO_DAEMON ? &c->to_daemon : &c->to_client);
	int64_t *last = &c->last[packet->direction];

	packet->depart = depart;
	if (at < c->stalled_until[packet->direction])
		at = c->stalled_until[packet->direction];
	if (at <= *last)
		at = *last + 1;
	*last = at;
	world_at(c->world, &packet->timer, AT_PACKET, at);
}

/* A notice to the daemon's end from its own kernel. */
static void packet_post(struct conn *c, enum packet_kind kind, enum gone how, int64_t at)
{
	struct packet *packet = packet_new(c, kind, TO_DAEMON, NULL, 0);

	packet->how = how;
	packet->depart = at;
	world_at(c->world, &packet->timer, AT_PACKET, at);
}

/* The run of the daemon is over: its host resets the connection. */
static void packet_refused(struct packet *p)
{
	struct conn *c = p->conn;

	if (c->client_open && p->kind == PACKET_BYTES)
		packet_send(packet_new(c, PACKET_END, TO_CLIENT, NULL, 0), c->world->now);
	free(p);
}

void packet_fired(struct packet *p)
{
	struct conn *c = p->conn;
	struct sim_daemon *d = c->daemon;

	if (c->silent && !(p->direction == TO_DAEMON && p->kind == PACKET_GONE)) {
		free(p);
		return;
	}
	if (p->direction == TO_DAEMON) {
		if (d->run == c->run && daemon_is_up(d))
			daemon_arrive(d, ARRIVAL_PACKET, p, 0);
		else
			packet_refused(p);
		return;
	}
	if (p->kind == PACKET_BYTES)
		c->unread -= p->n;
	if (c->client_open && (p->kind == PACKET_END || daemon_sent(d, p->run, p->depart)))
		client_on_packet(p);
	else
		free(p);
}

/* --- the daemon's end ------------------------------------------------------------------------------------------------ */

/* The daemon's end is closed: the service no longer knows the session. */
static void conn_forget(struct conn *c)
{
	struct request_sim *q;

	c->daemon_open = false;
	c->daemon->slot[(uint32_t)c->session % 256] = NULL;
	track_conn_over(c);
	c->going = false;
	while ((q = TAILQ_FIRST(&c->sent)))
		TAILQ_REMOVE(&c->sent, q, at_daemon);
}

static void conn_step(struct conn *c, struct event *event)
{
	event->session.id = c->session;
	daemon_step(c->daemon, event);
}

static void conn_on_open(struct conn *c)
{
	struct event event = {.kind = EVENT_OPEN, .session = {.peer = &c->peer}};
	struct sim_daemon *d = c->daemon;
	uint32_t slot = 0;

	while (slot < 256 && d->slot[slot])
		slot++;
	if (slot == 256 || c->stillborn)
		return;
	d->slot[slot] = c;
	d->slots = slot < d->slots ? d->slots : slot + 1;
	c->session = ++d->generation << 32 | slot;
	c->daemon_open = true;
	c->reading = true;
	conn_step(c, &event);
}

/* A line is read: its request begins now, or behind earlier untagged ones. */
static void conn_begin_request(struct conn *c)
{
	struct request_sim *q = TAILQ_FIRST(&c->sent), *other;
	bool busy = false;

	if (!q)
		return;
	TAILQ_REMOVE(&c->sent, q, at_daemon);
	TAILQ_FOREACH(other, &c->running, at_daemon)
	busy |= !other->tagged;
	if (busy && !q->tagged)
		TAILQ_INSERT_TAIL(&c->queued, q, at_daemon);
	else
		running_begin(q);
}

static void conn_read_line(struct conn *c, enum line kind, char *line, size_t n)
{
	struct event event = {.kind = kind == LINE_WHOLE ? EVENT_LINE : EVENT_TOO_LONG, .session = {.line = line, .n = n}};

	world_note(c->world, 9, hash_bytes(line, n), "c%u.%u to d%u: %.*s", c->client->index, c->number, c->daemon->index, (int)n,
		   line);
	c->active_at = c->world->now;
	conn_begin_request(c);
	conn_step(c, &event);
}

static void conn_read_lines(struct conn *c)
{
	struct lines l = {.max = LINE_BYTES, .skipping = c->skipping};
	char *line = NULL;
	size_t n = 0;

	l.at = buf_begin(&c->in);
	l.end = l.at + buf_length(&c->in);
	while (c->daemon_open && c->reading) {
		enum line kind = lines_next(&l, &line, &n);

		if (kind == LINE_NONE)
			break;
		conn_read_line(c, kind, line, n);
	}
	c->skipping = l.skipping;
	buf_consume(&c->in, (size_t)(l.at - buf_begin(&c->in)));
}

/* The daemon may let the holds of the connection expire. */
static void conn_excuse(struct conn *c)
{
	const struct plan *p = c->world->plan;

	for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++)
			if (c->account[owner][name].count > 0)
				checker_excuse(c->world, name, c->world->now + (p->max_lease_us + p->delay_us) * 51 / 50);
}

static void conn_on_gone(struct conn *c, enum gone how)
{
	struct event event = {.kind = EVENT_GONE, .session = {.how = how}};

	world_note(c->world, 10, how, "d%u finds c%u.%u gone: %d", c->daemon->index, c->client->index, c->number, (int)how);
	conn_excuse(c);
	c->going = true; /* timers of this step still send to it */
	conn_step(c, &event);
	conn_forget(c);
}

static void conn_on_bytes(struct conn *c, const struct packet *p)
{
	if (p->n)
		buf_append(&c->in, p->bytes, p->n);
	conn_read_lines(c);
	/* With unread lines before the EOF, the service learns that the EOF will come. */
	if (c->daemon_open && c->eof && (c->reading || !c->half_closed)) {
		struct event event = {.kind = c->reading ? EVENT_EOF : EVENT_HALF_CLOSED};

		c->half_closed = true;
		c->eof = !c->reading;
		c->eof_known = c->reading;
		conn_step(c, &event);
	}
}

void conn_on_packet(struct packet *p)
{
	struct conn *c = p->conn;

	if (p->kind == PACKET_OPEN) {
		conn_on_open(c);
	} else if (c->daemon_open && p->kind == PACKET_GONE) {
		conn_on_gone(c, p->how);
	} else if (p->kind == PACKET_GONE) {
		c->stillborn = true;
	} else if (c->daemon_open && p->kind == PACKET_SENT) {
		struct event event = {.kind = EVENT_SENT};

		c->active_at = c->world->now; /* the daemon read nothing from the client while that did not take its replies */
		running_has_read(c);
		conn_step(c, &event);
	} else if (c->daemon_open) {
		c->eof |= p->kind == PACKET_EOF && !c->eof_known;
		conn_on_bytes(c, p);
	}
	free(p);
}

void conn_send(struct conn *c, const char *p, size_t n, int64_t depart)
{
	c->unread += n;
	packet_send(packet_new(c, PACKET_BYTES, TO_CLIENT, p, n), depart);
	if (c->unread > OUTPUT_MAX)
		packet_post(c, PACKET_GONE, GONE_OVERFLOW, c->world->now);
}

void conn_hang_up(struct conn *c, int64_t depart)
{
	conn_forget(c);
	packet_send(packet_new(c, PACKET_END, TO_CLIENT, NULL, 0), depart);
}

/* The client reads as fast as the link allows. */
void conn_await(struct conn *c)
{
	c->awaited_step = c->world->checker.step;
	packet_post(c, PACKET_SENT, GONE_HANGUP, c->world->now + conn_latency(c, &c->to_client));
}

/* Lines that arrived meanwhile are read in the next pass. */
void conn_set_reading(struct conn *c, bool on)
{
	c->reading = on;
	c->active_at = c->world->now;
	if (on)
		packet_post(c, PACKET_BYTES, GONE_HANGUP, c->world->now);
}

void conn_daemon_died(struct conn *c)
{
	if (c->daemon_open)
		conn_forget(c);
	if (c->client_open)
		packet_send(packet_new(c, PACKET_END, TO_CLIENT, NULL, 0), c->world->now);
}

/* --- the client's end ------------------------------------------------------------------------------------------------ */

struct conn *conn_open(struct sim_client *client)
{
	struct world *w = client->world;
	struct conn *c = calloc(1, sizeof(*c));
	uint64_t who = client->index * 1000 + w->conn_count;

	if (!c)
		abort();
	c->world = w;
	c->client = client;
	c->daemon = client->daemon;
	c->run = client->daemon->run;
	c->number = w->conn_count++;
	c->peer = (struct peer){.is_unix = client->is_unix, .is_local = !client->remote, .pid = 100 + client->index, .uid = 1, .address = "sim"};
	c->peer.is_admin = w->plan->breaks_ms > 0 && client->index != 2; /* one of those that try is none */
	stream_init(&c->to_daemon, (uint64_t)w->plan->seed, DRAW_TO_DAEMON, who);
	stream_init(&c->to_client, (uint64_t)w->plan->seed, DRAW_TO_CLIENT, who);
	buf_init(&c->in);
	buf_init(&c->out);
	TAILQ_INIT(&c->sent);
	TAILQ_INIT(&c->queued);
	TAILQ_INIT(&c->running);
	TAILQ_INIT(&c->open);
	TAILQ_INSERT_TAIL(&w->conns, c, in_world);
	c->client_open = true;
	packet_send(packet_new(c, PACKET_OPEN, TO_DAEMON, NULL, 0), w->now);
	return c;
}

void conns_release(struct world *w)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(&w->conns))) {
		TAILQ_REMOVE(&w->conns, c, in_world);
		buf_release(&c->in);
		buf_release(&c->out);
		free(c);
	}
}

/* A write may arrive in pieces. */
void conn_write(struct conn *c, const char *line, size_t n, struct request_sim *request)
{
	TAILQ_INSERT_TAIL(&c->sent, request, at_daemon);
	while (n > 1 && stream_chance(&c->to_daemon, (unsigned)c->world->plan->fragment_percent)) {
		size_t part = (size_t)stream_range(&c->to_daemon, 1, (int64_t)n - 1);

		packet_send(packet_new(c, PACKET_BYTES, TO_DAEMON, line, part), c->world->now);
		line += part;
		n -= part;
	}
	packet_send(packet_new(c, PACKET_BYTES, TO_DAEMON, line, n), c->world->now);
}

void conn_leave(struct conn *c, enum leave how)
{
	struct packet *p;

	if (how == LEAVE_HALF) {
		packet_send(packet_new(c, PACKET_EOF, TO_DAEMON, NULL, 0), c->world->now);
		return;
	}
	c->client_open = false;
	/* A Unix socket hangs up; TCP sends FIN, or a reset when something is unread. */
	if (c->client->is_unix || stream_chance(&c->to_daemon, how == LEAVE_DIE ? 70 : 30)) {
		p = packet_new(c, PACKET_GONE, TO_DAEMON, NULL, 0);
		p->how = c->client->is_unix ? GONE_HANGUP : GONE_RESET;
	} else {
		p = packet_new(c, PACKET_EOF, TO_DAEMON, NULL, 0);
	}
	packet_send(p, c->world->now);
}

void conn_cut(struct conn *c, enum gone how, int64_t at)
{
	packet_post(c, PACKET_GONE, how, at);
}
