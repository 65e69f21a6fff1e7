/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold when all is healed and when all have left: every store is joined (L4), and nothing stays behind at daemons or stores (S21, L8). */
#include "daemon/core/member/members.h"
#include "tests/sim/world/world.h"

/* A node that was refused for its clock may stay so while its clock is off by more than this: see RESTARTS OF REDIS in redlockd(8). */
static bool clock_hovers(const struct world *w, unsigned node)
{
	const struct plan *p = w->plan;
	int64_t least = clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) / 5 * 4 - 20 * MSEC, wall = server_wall(&w->server[node]);
	unsigned ahead = 0, behind = 0;

	for (unsigned i = 0; i < p->nodes; i++) {
		ahead += wall - server_wall(&w->server[i]) > least;
		behind += server_wall(&w->server[i]) - wall > least;
	}
	return p->nodes > 1 && 2 * (ahead > behind ? ahead : behind) >= p->nodes - 1;
}

/*
 * A node whose clock was set back, and that then forgets, has a fence below what daemons remember. Where the daemon that joins it knows no token, each of the
 * others takes that fence for another loss: they quarantine it one after the other.
 */
static bool quarantined_in_turn(const struct world *w, unsigned node)
{
	const struct plan *p = w->plan;
	bool forgets = false;

	for (unsigned i = 0; i < p->faults; i++)
		forgets |= fault_forgets(&p->fault[i]) && p->fault[i].a % p->nodes == node;
	return forgets && p->daemons > 1 && w->server[node].stepped_us > 0;
}

/* L4: every daemon has joined every node. */
void check_joined(struct world *w)
{
	unsigned hover = 0;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		hover += clock_hovers(w, i) || quarantined_in_turn(w, i);
	for (unsigned i = 0; i < w->plan->daemons; i++) {
		int64_t joined;

		if (!w->daemon[i].service)
			continue; /* it starts: it was killed a moment ago */
		joined = service_metrics(w->daemon[i].service)->value[METRIC_NODES_JOINED];

		if (joined > w->daemon[i].conf.nodes || joined + hover < w->daemon[i].conf.nodes)
			checker_fail(w, INVARIANT_L4, -1, "daemon %u has joined only %lld of %lld nodes", i, (long long)joined,
				     (long long)w->plan->nodes);
	}
}

static void check_gauge(struct world *w, unsigned daemon, enum metric metric, int64_t want)
{
	int64_t value = service_metrics(w->daemon[daemon].service)->value[metric];

	if (value != want)
		checker_fail(w, INVARIANT_S21, -1, "daemon %u: %s is %lld when all clients have left, not %lld", daemon,
			     metric_table[metric].name, (long long)value, (long long)want);
}

/* Each hold that has ended is counted once, and has one reason. */
static void check_ends(struct world *w, unsigned daemon)
{
	const struct metrics *m = service_metrics(w->daemon[daemon].service);
	int64_t ended = 0, reasons = m->value[METRIC_RELEASES_CLIENT] + m->value[METRIC_RELEASES_DISCONNECT] + m->value[METRIC_RELEASES_FORCED] +
	                             m->value[METRIC_RELEASES_EXPIRED];

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		ended += (int64_t)m->hold.count[i];
	if (ended != reasons)
		checker_fail(w, INVARIANT_S21, -1, "daemon %u: %lld holds have ended, and %lld reasons are counted", daemon, (long long)ended,
			     (long long)reasons);
}

static void check_key(void *context, struct span key, struct span value, int64_t expires_ms)
{
	struct world *w = context;

	/*
	 * A queue whose last withdrawal was lost expires by itself, after three times the time of a ticket, and so does what tells that somebody may wait. The
	 * wait table of a store that was not usable when the last owner had gone expires after the time of its rows. What was used of a rate
	 * limit expires with the longest window. The name of the store stays.
	 */
	if ((span_starts(key, SPAN("redlockd:lock:q:")) || span_starts(key, SPAN("redlockd:lock:qs:")) || span_equal(key, SPAN("redlockd:lock:!waits")) ||
	     span_equal(key, SPAN("redlockd:lock:!circles")) || span_starts(key, SPAN("redlockd:lock:r:"))) &&
	    expires_ms > 0)
		return;
	if (span_equal(key, SPAN("redlockd:lock:!stored")) || span_equal(key, SPAN("redlockd:lock:!rates")))
		return; /* the next request takes out what is over */
	if ((w->plan->chores || w->plan->cuts) && (span_starts(key, SPAN("redlockd:lock:j")) || span_equal(key, SPAN("redlockd:lock:!queues")) ||
	                        span_equal(key, SPAN("redlockd:lock:!dead"))))
		return; /* what nobody has done yet */
	if ((w->plan->chores || w->plan->cuts) && expires_ms > 0 && span_equal(key, SPAN("redlockd:lock:!deferred")))
		return;
	if (!span_equal(key, SPAN("redlockd:lock:!meta")) && !span_equal(key, SPAN("redlockd:lock:!fence")) && !span_equal(key, SPAN("redlockd:lock:!home")))
		checker_fail(w, INVARIANT_L8, -1, "a key is left at the end: %.*s = %.*s until %lld", (int)key.n, key.p, (int)value.n,
			     value.p, (long long)expires_ms);
}

/* They are left to the next steps. */
static bool timers_are_due(const struct sim_daemon *d)
{
	struct instant at;

	return d->world->plan->slices && service_deadline(d->service, &at) && !instant_before(daemon_boot(d), at);
}

void check_leftovers(struct world *w)
{
	for (unsigned i = 0; i < w->plan->daemons; i++) {
		check_ends(w, i);
		check_gauge(w, i, METRIC_SESSIONS, 0);
		check_gauge(w, i, METRIC_WAITERS, 0);
		check_gauge(w, i, METRIC_LOCKS_HELD, 0);
		check_gauge(w, i, METRIC_PERMITS_HELD, 0);
		check_gauge(w, i, METRIC_PERMITS_WAITING, 0);
		check_gauge(w, i, METRIC_OUTSTANDING_RELEASES, 0);
		check_gauge(w, i, METRIC_NAMES, 0);
		/* One for the health of each node. */
		if (!timers_are_due(&w->daemon[i]))
			check_gauge(w, i, METRIC_TIMERS, w->daemon[i].conf.nodes);
	}
	check_chores_left(w);
	for (unsigned i = 0; i < w->plan->nodes; i++)
		sim_node_each(w->server[i].node, server_wall(&w->server[i]), check_key, w);
	check_joined(w);
}
