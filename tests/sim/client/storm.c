/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storms: a few clients lock hundreds of names at once, extend them, release them, or leave with all of them, so that tables grow and shrink while they are
 * listed and stores are overloaded. The names are x000 …; no other invariant watches them. Meanwhile the clients LIST them, page by page: a LIST shows each
 * name that is held from before the request until the reply (S26). In a throng all clients do so, each for some dozens of names at a time, and wait longer.
 */
#include "tests/sim/world/world.h"

#define PAUSE_US      (3 * SEC) /* the longest pause between two storms of a client */
#define QUIT_AGAIN_US (200 * MSEC)
#define DOZENS        12

/* --- what is held, as the lines of the daemon say -------------------------------------------------------------------- */

static int64_t storm_name(struct span line)
{
	struct span name = line_field(line, "name");
	int64_t n = 0;

	if (name.n != 4 || name.p[0] != 'x')
		return -1;
	for (size_t i = 1; i < name.n; i++) {
		if (name.p[i] < '0' || name.p[i] > '9')
			return -1;
		n = 10 * n + (name.p[i] - '0');
	}
	return n;
}

/* A line about a name starts its hold anew, or ends it. */
void storm_said(struct conn *c, struct span line)
{
	struct storm_holds *b = &c->world->storm[c->daemon->index];
	int64_t name = c->world->plan->storm ? storm_name(line) : -1;
	bool granted = line_field(line, "ttl_ms").n > 0 && line_int(line, "count") > 0;

	if (name < 0)
		return;
	b->since[name] = granted ? c->world->checker.step : 0;
	b->holder[name] = c;
}

void storm_conn_over(const struct conn *c)
{
	struct storm_holds *b = &c->world->storm[c->daemon->index];

	for (int64_t name = 0; c->world->plan->storm && name < STORM_NAMES; name++)
		if (b->holder[name] == c)
			b->since[name] = 0;
}

void storm_run_begins(struct sim_daemon *d)
{
	memset(&d->world->storm[d->index], 0, sizeof(d->world->storm[0]));
}

/* The rows continue with the name `to`: S26 if a name before it was held all the time. */
static void storm_passes(struct request_sim *q, int64_t to)
{
	struct sim_daemon *d = q->conn->daemon;
	const struct storm_holds *b = &d->world->storm[d->index];

	for (int64_t name = q->listed + 1; name < to; name++)
		if (b->since[name] > 0 && b->since[name] < q->begun_step)
			checker_fail(d->world, INVARIANT_S26, -1, "client %u: a LIST of daemon %u, begun at %lld us, leaves out x%03lld, which client %u holds",
				     q->conn->client->index, d->index, (long long)q->begun_at, (long long)name, b->holder[name]->client->index);
	q->listed = to;
}

void storm_listed(struct request_sim *q, struct span line)
{
	int64_t name = storm_name(line), rows = line_int(line, "n");

	if (q->ask != ASK_LIST)
		return;
	if (name >= 0)
		storm_passes(q, name);
	else if (rows >= 0 && rows < q->list_limit && line_int(line, "more") <= 0)
		storm_passes(q, STORM_NAMES);
}

/* --- what the clients ask -------------------------------------------------------------------------------------------- */

static void say_list(struct sim_client *c)
{
	int64_t after = stream_chance(&c->side, 50) ? -1 : stream_range(&c->side, 0, c->world->plan->storm), limit = stream_skewed(&c->side, 1, STORM_NAMES);
	char from[32] = "";
	struct request_sim *q;

	if (c->world->plan->rolls)
		roll_ask(c);
	if (after >= 0)
		snprintf(from, sizeof(from), " after=x%03lld", (long long)after);
	q = client_ask(c, ASK_LIST, NULL, "LIST locks prefix=x limit=%lld%s", (long long)limit, from);
	if (!q)
		return;
	q->listed = after;
	q->list_limit = limit;
}

/* Sends the request for up to as many names as the storm has, starting anywhere among them. */
static void say_many(struct sim_client *c, const char *verb, const char *fields, int64_t wait_ms)
{
	int64_t most = c->world->plan->storm, throng = c->world->plan->throng;
	int64_t count = stream_range(&c->side, throng ? 2 * DOZENS : most / 4, throng ? 5 * DOZENS : most), first = stream_range(&c->side, 0, most);

	for (int64_t i = 0; i < count; i++) {
		struct request_sim *q = client_ask(c, ASK_STORM, NULL, "%s x%03lld%s", verb, (long long)((first + i) % most), fields);

		if (!q)
			return;
		q->locks = !strcmp(verb, "LOCK");
		q->wait_ms = wait_ms;
	}
}

static void say_anything(struct sim_client *c)
{
	int64_t wait_ms = stream_chance(&c->side, c->world->plan->throng ? 80 : 30) ? 300 : 0;
	char fields[64];
	int n;

	if (wait_ms && c->world->plan->throng)
		wait_ms = stream_range(&c->side, 300, 3000);
	n = snprintf(fields, sizeof(fields), " ttl=%lldms", (long long)(c->world->plan->lease_us / MSEC));
	if (wait_ms)
		snprintf(fields + n, sizeof(fields) - (size_t)n, " wait=%lldms", (long long)wait_ms);
	switch (stream_range(&c->side, 0, 9)) {
	case 0:
		client_leave(c, LEAVE_CLOSE);
		break;
	case 1:
		say_many(c, "EXTEND", "", 0);
		break;
	case 2:
	case 3:
	case 4:
		say_many(c, "UNLOCK", "", 0);
		break;
	default:
		say_many(c, "LOCK", fields, wait_ms);
		break;
	}
}

/* Before the bounds are tight the client releases all that it holds. */
static void storm_quit(struct sim_client *c)
{
	bool ready = c->conn && !c->conn->left && c->state == CLIENT_RUNNING;

	if (ready)
		client_quit(c);
	else
		world_at(c->world, &c->side_timer, AT_SIDE, c->world->now + QUIT_AGAIN_US);
}

void storm_fired(struct sim_client *c)
{
	struct world *w = c->world;

	if (w->now > w->plan->length_us) {
		storm_quit(c);
		return;
	}
	if (c->index < STORMERS && stream_chance(&c->side, 40))
		say_list(c);
	say_anything(c);
	if (c->index < STORMERS && stream_chance(&c->side, 60))
		say_list(c);
	world_at(w, &c->side_timer, AT_SIDE,
		 w->now + (w->plan->throng ? stream_range(&c->side, PAUSE_US / 6, PAUSE_US) : stream_skewed(&c->side, MSEC, PAUSE_US)));
}

bool storm_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (!p->storm || c->index >= (p->throng ? p->throng : STORMERS))
		return p->storm > 0;
	stream_init(&c->side, (uint64_t)p->seed, DRAW_SIDE_REQUESTS, c->index);
	world_at(c->world, &c->side_timer, AT_SIDE, p->warm_us + stream_range(&c->side, 0, PAUSE_US));
	return true;
}
