/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What excuses a daemon that quarantines a node which lost nothing (L12): redlockd(8) promises no more than to know a stop of its own host by its traces, and
 * a daemon that is in doubt quarantines.
 */
#include "tests/sim/world/world.h"

#include <sys/param.h>

/* Within this time behind a fault a daemon has looked at each node that answers. */
static int64_t look_us(const struct plan *p)
{
	return 2 * p->timeout_us + SEC;
}

#define STOP_SHORT_US   (100 * MSEC)
#define HALT_FOLLOWS_US (3 * SEC) /* a node that does not answer at once is looked at later */

static bool is_short_stop(const struct sim_daemon *d, const struct fault *f)
{
	return f->kind == FAULT_DAEMON_HALT && f->a % d->world->plan->daemons == d->index && f->for_us < STOP_SHORT_US;
}

static bool is_stop_of_process(const struct sim_daemon *d, const struct fault *f)
{
	return fault_pauses(f) && f->a % d->world->plan->daemons == d->index;
}

/*
 * Two short stops, one soon behind the other: some nodes are looked at between them, others only behind both. Or the process is stopped while it asks: what
 * it reads then came too late to tell. The nodes do not show the same jump in time, and redlockd(8) promises no more than to know a stop by that.
 */
static bool stops_run_together(const struct sim_daemon *d)
{
	const struct plan *p = d->world->plan;

	for (unsigned i = 0; i < p->faults; i++)
		for (unsigned k = 0; k < p->faults; k++) {
			const struct fault *first = &p->fault[i], *then = &p->fault[k];
			bool halts = first->kind == FAULT_DAEMON_HALT && first->a % p->daemons == d->index;
			bool run_on = (is_short_stop(d, first) && is_short_stop(d, then)) || (halts && is_stop_of_process(d, then));

			if (i != k && run_on && first->at_us <= then->at_us && then->at_us - first->at_us - first->for_us < look_us(p))
				return true;
		}
	return false;
}

/* For how long its process has run since then. */
static int64_t ran_since(const struct sim_daemon *d, int64_t since)
{
	const struct plan *p = d->world->plan;
	int64_t now = d->world->now, ran = now - since;

	for (unsigned i = 0; i < p->faults; i++) {
		const struct fault *f = &p->fault[i];

		if (is_stop_of_process(d, f) && f->at_us < now && f->at_us + f->for_us > since)
			ran -= MIN(f->at_us + f->for_us, now) - MAX(f->at_us, since);
	}
	return ran;
}

/* Its host stood still just now, or does so: then it may not know for how long. */
static bool halted_lately(const struct sim_daemon *d, const struct fault *f)
{
	return f->kind == FAULT_DAEMON_HALT && f->a % d->world->plan->daemons == d->index && f->at_us <= d->world->now &&
	       ran_since(d, f->at_us + f->for_us) < look_us(d->world->plan) + HALT_FOLLOWS_US;
}

/* Its host stood still since the node last answered; or since it last asked the node for a vote, which it does only once it has judged what the node shows. */
static bool halt_is_unjudged(const struct sim_daemon *d, const struct server *s)
{
	const struct known_node *known = &d->world->checker.known_node[d->index][s->index];

	return known->halted_us != d->host.halted_us || known->expected != 0;
}

/* Can a majority of the nodes prove to a daemon that its own host stood still? Only where nothing else goes wrong meanwhile, except stops of daemons. */
static bool stops_are_seen(const struct sim_daemon *d, const struct server *s)
{
	const struct world *w = d->world;
	bool halts = halt_is_unjudged(d, s), others = false;

	for (unsigned i = 0; i < w->plan->faults; i++) {
		int64_t kind = w->plan->fault[i].kind;

		halts |= halted_lately(d, &w->plan->fault[i]);
		others |= kind != FAULT_DAEMON_HALT && !fault_pauses(&w->plan->fault[i]);
	}
	return !halts || (!others && d->conf.nodes >= 3 && !stops_run_together(d));
}

/* The clock of its host was set by hand just now: what the daemon compared before is compared with the new time. */
static bool host_was_set(const struct sim_daemon *d)
{
	const struct plan *p = d->world->plan;
	int64_t now = d->world->now;
	bool set = false;

	for (unsigned i = 0; i < p->faults; i++) {
		const struct fault *f = &p->fault[i];

		set |= f->kind == FAULT_DAEMON_WALL && f->a % p->daemons == d->index && f->at_us <= now && now - f->at_us < look_us(p);
	}
	return set;
}

/*
 * Where the clock of its host is behind, or was until just now, and those of other servers were set back, a daemon takes a server that is right for one that
 * was set forward.
 */
static bool seems_ahead(const struct sim_daemon *d, const struct server *s)
{
	bool set_back = false;

	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		set_back |= d->world->server[i].stepped_us > 0;
	return set_back && (host_was_set(d) || server_wall(s) - host_wall(&d->host, d->world->now) > d->conf.clock_tol_us);
}

/*
 * A clock was set, and the node forgot. The daemon that joined it after its quarantine did not know the earlier tokens, which were ahead of its clock. A daemon
 * that missed all this sees only that the fence fell.
 */
static bool fence_seems_to_fall(const struct sim_daemon *d, const struct server *s)
{
	const struct known_node *known = &d->world->checker.known_node[d->index][s->index];
	bool set = false;

	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		set |= d->world->server[i].stepped_us > 0 || d->world->server[i].ahead_us > 0;
	return set && known->fence < known->fence_ever;
}

bool node_may_be_doubted(const struct sim_daemon *d, const struct server *s)
{
	return !stops_are_seen(d, s) || seems_ahead(d, s) || fence_seems_to_fall(d, s);
}
