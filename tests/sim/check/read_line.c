/* SPDX-License-Identifier: BSD-2-Clause */
/* The line of readers and writers: of one daemon (S19), and over several (S20). See readers.c. */
#include "tests/sim/world/world.h"

static bool is_passed(const struct world *w, const struct request_sim *q, int64_t name, const struct request_sim *other)
{
	bool waits = other->ask == ASK_READ && other->locks && other->name == name && other->wait_ms != 0 && !running_awaits(other) &&
		     !ruled_out(other);

	/* A LOCKALL may have had this name, among others, long before it had all of them, and before the other came. */
	if (q->reads == READ_ALL && other->priority != q->priority)
		return false;
	return waits && stands_behind(w, q, other);
}

/* Nobody is granted before an earlier waiter of the same daemon, or one of a higher priority, whatever their modes. */
void check_read_order(struct request_sim *q, int64_t name)
{
	struct world *w = q->conn->world;
	const struct request_sim *other;
	const struct conn *c;

	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		if (c->daemon != q->conn->daemon || c == q->conn || c->going || c->taken)
			continue;
		TAILQ_FOREACH(other, &c->running, at_daemon)
			if (is_passed(w, q, name, other))
				checker_fail(w, INVARIANT_S19, -1,
					     "r%lld: daemon %u granted client %u before client %u, which asked earlier or has a higher priority",
					     (long long)name, q->conn->daemon->index, q->conn->client->index, c->client->index);
	}
}

/* --- readers and writers of several daemons (S20) --- */

#define TURN_US (1300 * MSEC) /* a poll, a hand-over, and some rounds */
#define NEVER   (INT64_MAX / 2)

/* Its session has the name alone from now on, or not any more. */
void reader_is_alone(struct conn *c, int64_t name, bool alone)
{
	if (c->read_alone[name] || alone)
		c->world->checker.read_tokens.alone_at[name] = later(c->world->checker.read_tokens.alone_at[name], c->world->now);
	c->read_alone[name] = alone;
}

/*
 * Nothing is wrong, and every message arrives at once, so a writer is soon in line at all stores, and asks within the time that a free name is reserved for
 * it. Who has a priority, or asks for several names, stands elsewhere in the line than where it came.
 */
static bool turns_are_kept(const struct world *w)
{
	const struct plan *p = w->plan;

	for (unsigned i = 0; i < p->jobs; i++)
		if (p->job[i].priority > 0)
			return false;
	if (p->gathers || p->meets)
		return false;
	return p->faults == 0 && w->class == CLASS_T && !w->strange && p->heard_percent == 100 && p->echo_percent == 0 && p->service_us == 0 &&
	       p->window == 0;
}

static bool waits_in_line(const struct request_sim *q, int64_t name)
{
	return q->ask == ASK_READ && q->locks && q->name == name && q->wait_ms != 0;
}

/* The ticket of a waiter that has left serves the next one, so the place of a daemon is as old as its line. */
void readers_begin(struct request_sim *q)
{
	const struct request_sim *other;
	const struct conn *c;

	q->line_since = q->conn->world->now;
	if (!waits_in_line(q, q->name) || !turns_are_kept(q->conn->world))
		return;
	TAILQ_FOREACH(c, &q->conn->world->conns, in_world)
		TAILQ_FOREACH(other, &c->running, at_daemon)
			if (other != q && c->daemon == q->conn->daemon && waits_in_line(other, q->name) && other->line_since < q->line_since)
				q->line_since = other->line_since;
}

/* Readers of that daemon were let in by a store a moment ago. Their ticket is gone, and that of the writer behind them is on its way. */
static bool lets_in(const struct sim_daemon *d, int64_t name)
{
	const struct world *w = d->world;

	return w->now < w->checker.read_tokens.let_in_at[d->index][name] + 50 * round_trip_us(w->plan);
}

/* With redis.foreign that daemon left the name alone for 150 ms when its last reader had gone: the stores give it to whoever asks. */
static bool leaves_alone(const struct sim_daemon *d, int64_t name)
{
	const struct world *w = d->world;

	return w->plan->foreign && w->now < w->checker.read_tokens.released_at[d->index][name] + 150 * MSEC + 50 * round_trip_us(w->plan);
}

/*
 * While only readers have the name, none of a daemon that came to the line long after a writer elsewhere is granted it. Behind a writer that has it the
 * daemons take turns as for any other name: the waiters of its own daemon show no ticket meanwhile. There is no line before the stores are joined.
 */
void check_read_turn(const struct request_sim *q)
{
	struct world *w = q->conn->world;
	int64_t line_at = later(w->checker.read_tokens.alone_at[q->name], w->plan->trust ? 0 : plan_quarantine_us(w->plan));
	const struct request_sim *other;
	const struct conn *c;

	if (!turns_are_kept(w))
		return;
	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		if (c->daemon == q->conn->daemon || c->going || c->taken)
			continue;
		TAILQ_FOREACH(other, &c->running, at_daemon)
			if (other->reads == READ_ALONE && waits_in_line(other, q->name) && !lets_in(c->daemon, q->name) && !leaves_alone(c->daemon, q->name) &&
			    later(other->begun_at, line_at) + TURN_US + 50 * round_trip_us(w->plan) < q->line_since)
				checker_fail(w, INVARIANT_S20, -1, "r%lld: client %u reads at daemon %u, and client %u of daemon %u waits to write since %lld",
					     (long long)q->name, q->conn->client->index, q->conn->daemon->index, c->client->index, c->daemon->index,
					     (long long)other->begun_at);
	}
}

/* Nobody knows until when its session keeps others out. */
void line_conn_over(struct conn *c)
{
	const struct request_sim *q;

	for (int64_t name = 0; name < READ_NAMES; name++) {
		if (c->read_alone[name] || c->read_count[name] > 0)
			c->world->checker.read_tokens.alone_at[name] = NEVER;
		TAILQ_FOREACH(q, &c->running, at_daemon)
			if (waits_in_line(q, name))
				c->world->checker.read_tokens.alone_at[name] = NEVER;
	}
}

/* The number of the name r0 …; -1: it is another. */
static int64_t name_of_call(const struct call *call)
{
	int64_t n = call->name.n == 2 && call->name.p[0] == 'r' ? call->name.p[1] - '0' : -1;

	return n < READ_NAMES ? n : -1;
}

void readers_call(struct sim_daemon *d, const struct call *call)
{
	int64_t name = name_of_call(call);

	if (name < 0)
		return;
	if (call->kind == CALL_RELEASE)
		d->world->checker.read_tokens.released_at[d->index][name] = d->world->now;
	else if (call->kind == CALL_ACQUIRE && call->ticket.n > 0)
		d->world->checker.read_tokens.shown_us[d->index][name] = ticket_us(call->ticket);
}

void readers_ran(const struct server *s, const struct flight *f, unsigned i)
{
	int64_t name = f->call[i].kind == CALL_ACQUIRE && f->call[i].form == FORM_SHARED ? name_of_call(&f->call[i]) : -1;

	if (name >= 0 && f->answer[i].code == 'G')
		s->world->checker.read_tokens.let_in_at[f->daemon->index][name] = s->world->now;
}

static int64_t first_place(const struct sim_daemon *d, int64_t name)
{
	const struct request_sim *q;
	const struct conn *c;
	int64_t first = INT64_MAX, place;

	TAILQ_FOREACH(c, &d->world->conns, in_world)
	{
		if (c->daemon != d)
			continue;
		TAILQ_FOREACH(q, &c->running, at_daemon)
		{
			place = q->ask == ASK_READ && q->locks && q->name == name ? ticket_place(q) : INT64_MAX;
			first = place < first ? place : first;
		}
	}
	return first;
}

void readers_step(struct sim_daemon *d)
{
	for (int64_t name = 0; name < READ_NAMES; name++) {
		int64_t *shown_us = &d->world->checker.read_tokens.shown_us[d->index][name];
		const char word[] = {'r', (char)('0' + name), '\0'};

		if (*shown_us)
			ticket_check_place(d, *shown_us, first_place(d, name), -1, word);
		*shown_us = 0;
	}
}
