/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of a daemon, where there are some: each daemon goes from one set of them to another, as by a reload, until the world heals. */
#include "tests/sim/world/rules.h"
#include "tests/sim/world/world.h"

#define JUDGED_WITHIN 4000 /* steps, where each that has time for it looks at one request */

bool ruled_denies(const struct conn *c, struct span name)
{
	return c->world->plan->rules_ms && sim_rules_deny(c->daemon->rules.set, c->peer.is_unix, name);
}

void daemon_rules_begin(struct sim_daemon *d)
{
	const struct plan *p = d->world->plan;

	if (!p->rules_ms)
		return;
	stream_init(&d->rules.stream, (uint64_t)p->seed, DRAW_RULES, d->index);
	d->rules.set = (unsigned)stream_range(&d->rules.stream, 0, RULE_SETS - 1);
	d->conf.rules = sim_rules(d->rules.set);
	world_at(d->world, &d->rules.timer, AT_RULES, p->warm_us);
}

void daemon_rules_step(struct sim_daemon *d)
{
	if (!d->rules.judging || daemon_is_killed(d))
		return;
	d->rules.judging = service_is_judging(d->service);
	if (!d->rules.judging)
		ruled_anew(d);
	else if (++d->rules.steps > JUDGED_WITHIN)
		checker_fail(d->world, INVARIANT_S39, -1, "daemon %u judges by new rules for %u steps", d->index, d->rules.steps);
}

/* A daemon that stands still reads its new rules later; one that is down, when it starts. */
void daemon_rules_fired(struct sim_daemon *d)
{
	const struct world *w = d->world;
	const struct plan *p = w->plan;
	struct event event = {.kind = EVENT_RULES};
	int64_t next = w->now + stream_skewed(&d->rules.stream, MSEC, 2 * p->rules_ms * MSEC);
	bool healed = w->now >= p->length_us;

	if (!daemon_is_up(d) || d->state == DAEMON_RUNNING) {
		d->rules.set = healed ? 0 : (unsigned)stream_range(&d->rules.stream, 0, RULE_SETS - 1);
		d->conf.rules = sim_rules(d->rules.set);
		world_note(d->world, 14, d->rules.set, "d%u has the rules %u", d->index, d->rules.set);
	}
	if (d->state == DAEMON_RUNNING && !daemon_is_killed(d)) {
		service_reload(d->service, &d->conf);
		d->rules.judging = true;
		d->rules.steps = 0;
		d->rules.since = w->now;
		daemon_step(d, &event);
	}
	if (d->rules.set != 0 || !healed)
		world_at(d->world, &d->rules.timer, AT_RULES, healed ? w->now + MSEC : next < p->length_us ? next : p->length_us);
}
