/* SPDX-License-Identifier: BSD-2-Clause */
/* The stages of a world, one after the other: it warms up, faults happen, it heals, it settles, the finale tries what it promises, all clients leave. */
#include "tests/sim/world/world.h"

int64_t settle_us(const struct plan *p)
{
	return plan_quarantine_us(p) + p->max_lease_us + p->delay_us + p->grace_ms * MSEC + 3 * SEC;
}

void stage_enter(struct world *w, enum stage stage, int64_t after_us)
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

/* A clock that was set back makes every key last that much longer, and daemons allow for drift on top. */
static int64_t stepped_us(const struct world *w)
{
	int64_t most = 0;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (w->server[i].stepped_us > most)
			most = w->server[i].stepped_us;
	return most + most / 50;
}

void stage_leave(struct world *w)
{
	const struct plan *p = w->plan;

	/*
	 * A client's end takes effect after a command's timeout, and the release of what it held after another one. A session that waited while it held
	 * something is looked at 5 s later, though it has left.
	 */
	stage_enter(w, STAGE_LEAVING, settle_us(p) + p->max_lease_us + stepped_us(w) + 2 * p->timeout_us + 6 * SEC);
	for (unsigned i = 0; i < p->clients; i++)
		client_retire(&w->client[i], stream_chance(&w->finale, 50));
}

/*
 * Once all daemons are of the next generation progress is promised again, if each server that stays was taken over with its data. Otherwise there may be too
 * few of the set before, see CHANGING THE SERVERS in redlockd(8).
 */
static bool strangers_remain(const struct world *w)
{
	if (!plan_changes_servers(w->plan))
		return w->strange;
	for (unsigned i = 0; i < w->plan->daemons; i++)
		if (!w->daemon[i].strange)
			return true;
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (server_is_of_both(w->plan, i) && !w->server[i].knows_set)
			return true;
	return false;
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
		w->strange = strangers_remain(w);
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
