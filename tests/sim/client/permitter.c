/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Permits of the semaphores p0 …, beside the jobs: clients acquire, check, extend and release them, most with the limit of the name, some with another, and
 * some LOCK such a name. What they believe is as for locks.
 */
#include "tests/sim/world/world.h"

#define PAUSE_US      (600 * MSEC)
#define END_BEFORE_US SEC

int64_t permit_name(struct span line)
{
	struct span name = line_field(line, "name");

	return name.n == 2 && name.p[0] == 'p' && name.p[1] >= '0' && name.p[1] < '0' + SEMAPHORES ? name.p[1] - '0' : -1;
}

static const struct host *permit_host(const struct sim_client *c)
{
	return c->remote ? &c->own : &c->daemon->host;
}

/* What was promised stays: until then nobody else may be granted its slot. */
static void disclaim(struct seating *s)
{
	s->live = false;
	s->until = 0;
	s->deadline = INSTANT_PAST;
}

void permitter_give_up(struct seating *s)
{
	disclaim(s);
	s->promised = 0;
}

void permitter_disclaim_all(struct sim_client *c)
{
	for (unsigned i = 0; i < SEATINGS; i++)
		permitter_give_up(&c->permits.has[i]);
}

/* --- what it hears --------------------------------------------------------------------------------------------------- */

static struct seating *seating_of(struct sim_client *c, struct span line)
{
	for (unsigned i = 0; i < SEATINGS; i++) {
		struct seating *s = &c->permits.has[i];

		if (s->live && s->name == permit_name(line) && s->fence == line_int(line, "fence") && s->slot == line_int(line, "permit"))
			return s;
	}
	return NULL;
}

static void believe(struct sim_client *c, struct seating *s, const struct request_sim *q, struct span line)
{
	if (q->conn->left || s->asked || line_int(line, "valid_ms") < 0)
		return;
	s->deadline = instant_add(q->anchor, line_int(line, "valid_ms") * MSEC);
	s->until = host_true(permit_host(c), s->deadline);
	s->promised = s->until;
	world_note(c->world, 26, (uint64_t)s->until, "c%u relies on p%lld %lld fence %lld until %lld", c->index, (long long)s->name, (long long)s->slot,
		   (long long)s->fence, (long long)s->until);
	check_permit(c, s);
}

/* By slot and fence: it may lose the permit, and be granted the same slot, before this is read. */
static void give_back(struct sim_client *c, int64_t name, struct span line)
{
	client_ask(c, ASK_PERMIT, NULL, "RELEASE p%lld permit=%lld fence=%lld", (long long)name, (long long)line_int(line, "permit"),
		   (long long)line_int(line, "fence"));
}

static void permit_granted(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct seating *s = NULL;

	for (unsigned i = 0; i < SEATINGS && !s; i++)
		s = c->permits.has[i].live || c->permits.has[i].promised > c->world->now ? NULL : &c->permits.has[i];
	if (!s) {
		give_back(c, q->name, line);
		return;
	}
	*s = (struct seating){.live = true, .name = q->name, .limit = q->list_limit, .fence = line_int(line, "fence"), .owner = q->owner,
	                      .slot = line_int(line, "permit")};
	believe(c, s, q, line);
}

void permitter_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	struct seating *s;

	if (!ok || line_field(line, "permit").n == 0)
		return;
	if (q->locks) {
		permit_granted(c, q, line);
		return;
	}
	s = seating_of(c, line);
	if (s)
		believe(c, s, q, line);
}

static struct request_sim *acquire_open(const struct sim_client *c)
{
	struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q->ask == ASK_PERMIT && q->locks)
			return q;
	return NULL;
}

/* It goes on with what it relies on, and gives back what it does not know of. */
void permitter_row(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct seating *s = permit_name(line) < 0 ? NULL : seating_of(c, line);

	if (s)
		check_permit_owner(c, s, line), believe(c, s, q, line);
	else if (permit_name(line) >= 0 && line_field(line, "permit").n > 0)
		give_back(c, permit_name(line), line);
}

void permitter_pushed(struct sim_client *c, struct span line)
{
	struct seating *s = permit_name(line) < 0 ? NULL : seating_of(c, line);
	struct instant end;

	if (!s)
		return;
	if (!span_equal(line_word(line, 1), SPAN("CONTENDED")))
		check_permit_owner(c, s, line);
	if (span_equal(line_word(line, 1), SPAN("LOST"))) {
		disclaim(s);
	} else if (span_equal(line_word(line, 1), SPAN("RISK"))) {
		end = instant_add(client_boot(c), line_int(line, "left_ms") * MSEC);
		if (!instant_before(end, s->deadline))
			return;
		s->deadline = end;
		s->until = host_true(permit_host(c), end);
	}
}

/* --- what it asks ---------------------------------------------------------------------------------------------------- */

static void say_acquire(struct sim_client *c)
{
	static const int64_t waits[] = {0, 0, 20, 300, 3000, 10000}, limits[SEMAPHORES] = {1, 3, 5};
	struct stream *t = &c->permits.stream;
	int64_t wait_ms = waits[stream_range(t, 0, 5)], name = stream_range(t, 0, SEMAPHORES - 1);
	int64_t limit = limits[name] + (stream_chance(t, 7) ? 1 : 0);
	int64_t ttl_ms = c->world->plan->lease_us / MSEC / (stream_chance(t, 20) ? 2 : 1);
	int64_t priority = stream_chance(t, 10), owner = permit_owner_draw(c);
	struct request_sim *q;

	q = client_ask(c, ASK_PERMIT, NULL, "ACQUIRE p%lld limit=%lld ttl=%lldms wait=%lldms%s%s", (long long)name, (long long)limit,
		       (long long)ttl_ms, (long long)wait_ms, priority ? " priority=1" : "", permit_owner_field(owner));
	if (!q)
		return;
	q->owner = owner;
	q->name = name;
	q->list_limit = limit;
	q->wait_ms = wait_ms;
	q->priority = priority;
	q->locks = true;
	q->group = 1; /* it asks several times */
}

static void say_about(struct sim_client *c, const char *verb, const struct seating *s, const char *fields)
{
	struct request_sim *q = client_ask(c, ASK_PERMIT, NULL, "%s p%lld permit=%lld%s%s", verb, (long long)s->name, (long long)s->slot,
	                                   permit_owner_field(s->owner), fields);

	if (q)
		q->name = s->name;
}

/* While it asks for a permit it names the fence as well: it may have lost this one, and be granted the same slot before this is read. */
static void say_release(struct sim_client *c, struct seating *s)
{
	char fence[32];

	snprintf(fence, sizeof(fence), " fence=%lld", (long long)s->fence);
	say_about(c, "RELEASE", s, acquire_open(c) ? fence : "");
	s->asked = true;
	permitter_give_up(s);
}

static void say_anything(struct sim_client *c, struct seating *s)
{
	struct stream *t = &c->permits.stream;
	char ttl[32];

	snprintf(ttl, sizeof(ttl), " ttl=%lldms", (long long)c->world->plan->lease_us / MSEC);
	if (stream_chance(t, 15))
		say_about(c, "CHECK", s, "");
	else if (stream_chance(t, 15))
		say_about(c, "EXTEND", s, ttl);
	else
		say_release(c, s);
}

static void say_lock(struct sim_client *c)
{
	int64_t name = stream_range(&c->permits.stream, 0, SEMAPHORES - 1), ttl_ms = c->world->plan->lease_us / MSEC / 2;
	struct request_sim *q;

	q = client_ask(c, ASK_OTHER, NULL, "LOCK p%lld wait=10ms renew=no ttl=%lldms", (long long)name, (long long)ttl_ms);
	if (!q)
		return;
	q->wait_ms = 10;
	q->group = 1;
}

/* One that it relies on. Of an earlier permit it says nothing more: a later one may have the same slot. */
static struct seating *draw_seating(struct sim_client *c)
{
	int64_t from = stream_range(&c->permits.stream, 0, SEATINGS - 1);

	for (int64_t i = 0; i < SEATINGS; i++) {
		struct seating *s = &c->permits.has[(from + i) % SEATINGS];

		if (s->live && s->until <= c->world->now)
			disclaim(s);
		else if (s->live)
			return s;
	}
	return NULL;
}

/* The path to the daemon breaks: the daemon hears a reset, and the client goes on believing. */
static void permitter_is_cut(struct sim_client *c)
{
	c->conn->silent = true;
	conn_cut(c->conn, GONE_RESET, c->world->now);
	client_lost_conn(c);
}

/* In half of the cases it gives back all, also what a session that was resumed has; else it goes on, whatever the rows of RESUME tell. */
static void permitter_meets(struct sim_client *c)
{
	c->permits.conn = c->conn;
	if (!c->graced || stream_chance(&c->permits.stream, 50))
		return;
	permitter_disclaim_all(c);
	for (int64_t i = 0; i < SEMAPHORES * SEATINGS; i++)
		client_ask(c, ASK_PERMIT, NULL, "RELEASE p%lld", (long long)i % SEMAPHORES);
	permit_owner_meets(c);
}

void permitter_fired(struct sim_client *c)
{
	struct world *w = c->world;
	struct stream *t = &c->permits.stream;
	bool ready = c->conn && !c->conn->left && c->state == CLIENT_RUNNING;
	struct seating *s = draw_seating(c);
	struct request_sim *q = ready ? acquire_open(c) : NULL;

	if (ready && c->permits.conn != c->conn)
		permitter_meets(c);
	else if (ready && w->now > w->plan->length_us && s)
		say_release(c, s);
	else if (ready && w->now > w->plan->length_us)
		;
	else if (ready && c->remote && stream_chance(t, 3))
		permitter_is_cut(c);
	else if (ready && q && stream_chance(t, 10))
		client_ask(c, ASK_OTHER, NULL, "CANCEL @t%u", q->number);
	else if (ready && s && permit_owner_says(c, s))
		;
	else if (ready && s && stream_chance(t, 45))
		say_anything(c, s);
	else if (ready && stream_chance(t, 4))
		say_lock(c);
	else if (ready)
		say_acquire(c);
	if (w->now <= w->plan->length_us + settle_us(w->plan) - END_BEFORE_US)
		world_at(w, &c->permits.timer, AT_PERMITTER, w->now + stream_skewed(t, MSEC, PAUSE_US));
}

void permitter_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	permitter_disclaim_all(c);
	if (!p->permits || c->index >= CLIENTS_COMMON)
		return;
	stream_init(&c->permits.stream, (uint64_t)p->seed, DRAW_PERMITS, c->index);
	stream_init(&c->permits.owners, (uint64_t)p->seed, DRAW_PERMIT_OWNERS, c->index);
	world_at(c->world, &c->permits.timer, AT_PERMITTER, p->warm_us + stream_range(&c->permits.stream, 0, PAUSE_US));
}
