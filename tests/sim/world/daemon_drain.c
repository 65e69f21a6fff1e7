/* SPDX-License-Identifier: BSD-2-Clause */
/* DRAIN, asked for by an administrator who comes for that alone. The daemon looks every 50 ms whether it may end, and ends like one that gets SIGTERM. */
#include "tests/sim/world/world.h"

#include <inttypes.h>
#include <stdio.h>

#define LOOK_US    (50 * MSEC)
#define ADMIN_SLOT 255

static void look_again(struct sim_daemon *d)
{
	world_at(d->world, &d->drain, AT_DRAIN, d->world->now + LOOK_US);
}

static void drain_ask(struct sim_daemon *d, int64_t in_us)
{
	static const struct peer admin = {.is_unix = true, .is_local = true, .is_admin = true, .pid = 99, .uid = 0, .address = "sim"};
	char line[48];
	struct event open = {.kind = EVENT_OPEN}, ask = {.kind = EVENT_LINE}, gone = {.kind = EVENT_GONE};

	d->admin = ++d->generation << 32 | ADMIN_SLOT;
	open.session.id = ask.session.id = gone.session.id = d->admin;
	open.session.peer = &admin;
	ask.session.line = line;
	ask.session.n = (size_t)snprintf(line, sizeof(line), in_us < 0 ? "DRAIN" : "DRAIN in=%" PRId64 "us", in_us);
	gone.session.how = GONE_HANGUP;
	daemon_step(d, &open);
	daemon_step(d, &ask);
	daemon_step(d, &gone);
}

bool daemon_drain(struct sim_daemon *d, int64_t in_us)
{
	if (d->state != DAEMON_RUNNING || d->halted || d->slot[ADMIN_SLOT] || d->drains)
		return false;
	d->drains = true;
	d->drain_over = false;
	d->drain_grants = -1;
	d->drain_late = 0;
	d->drain_until = in_us < 0 ? INSTANT_NEVER : instant_add(daemon_boot(d), in_us);
	drain_ask(d, in_us);
	d->drain_grants = service_metrics(d->service)->value[METRIC_GRANTS];
	look_again(d);
	return true;
}

void daemon_drain_step(const struct sim_daemon *d)
{
	int64_t grants = service_metrics(d->service)->value[METRIC_GRANTS];

	if (d->drains && d->drain_grants >= 0 && grants != d->drain_grants)
		checker_fail(d->world, INVARIANT_S34, -1, "daemon %u drains, and has granted %" PRId64 " more", d->index, grants - d->drain_grants);
}

/* A name that a line said to be held, and no line said to be free or lost. */
static int64_t held_by_lines(const struct sim_daemon *d)
{
	for (int64_t name = 0; name < d->world->plan->names; name++) {
		const struct lease *l = &d->world->checker.lease[d->index][name];

		if (l->held && l->conn && l->conn->daemon == d && l->conn->daemon_open && instant_before(daemon_boot(d), recount_deadline(d, l)))
			return name;
	}
	return -1;
}

static bool holds_anything(const struct sim_daemon *d)
{
	const struct metrics *m = service_metrics(d->service);

	return m->value[METRIC_LOCKS_HELD] > 0 || m->value[METRIC_PERMITS_HELD] > 0;
}

static void drained(struct sim_daemon *d)
{
	int64_t name = held_by_lines(d);

	if (instant_before(daemon_boot(d), d->drain_until) && (name >= 0 || holds_anything(d)))
		checker_fail(d->world, INVARIANT_S34, name, "daemon %u has drained, though somebody holds something, before its time is over", d->index);
	world_note(d->world, 10, d->run, "d%u has drained", d->index);
	d->drained = true;
	daemon_shut(d);
}

void daemon_drain_fired(struct sim_daemon *d)
{
	if (!daemon_is_up(d) || !d->drains)
		return;
	if (d->state != DAEMON_RUNNING) {
		d->drain_late = 0;
		look_again(d);
		return;
	}
	if (d->drain_over) {
		daemon_drain_ends(d);
		return;
	}
	if (service_is_drained(d->service)) {
		drained(d);
		return;
	}
	d->drain_late += !instant_before(daemon_boot(d), d->drain_until);
	if (d->drain_late > 2)
		checker_fail(d->world, INVARIANT_S34, -1, "daemon %u still drains, though its time is over", d->index);
	look_again(d);
}

void daemon_drain_ends(struct sim_daemon *d)
{
	if (d->state == DAEMON_RUNNING && d->drains) {
		d->drained = true;
		daemon_shut(d);
	}
	d->drain_over = daemon_is_up(d); /* it stands still, and ends when it goes on */
	if (!daemon_is_up(d) && d->drained)
		daemon_start(d);
}
