/* SPDX-License-Identifier: BSD-2-Clause */
/* A free name is granted to its waiters in time (L1, L6, L11). */
#include "tests/sim/world/world.h"

#define WOKEN_US    (200 * MSEC) /* L6: an UNLOCK leads to a grant within this time and some round trips */
#define FLAPPING_US (500 * MSEC) /* L11: likewise, while nodes flap */

void checker_excuse(struct world *w, int64_t name, int64_t until)
{
	if (until > w->checker.excused[name])
		w->checker.excused[name] = until;
}

void checker_sets_back(struct world *w, unsigned node)
{
	struct span value;
	int64_t expires_ms;

	for (int64_t name = 0; name < w->plan->names; name++)
		if (sim_node_get(w->server[node].node, name_span(name), server_wall(&w->server[node]), &value, &expires_ms))
			w->checker.long_lived_ms[node][name] = expires_ms ? expires_ms : INT64_MAX;
}

/* A renewal never shortens a key: one that ends no earlier than recorded is the old one, or the old one renewed. */
bool outlives_its_lease(const struct world *w, int64_t name)
{
	struct span value;
	int64_t expires_ms;

	for (unsigned i = 0; i < w->plan->nodes && w->set_back_us; i++)
		if (w->checker.long_lived_ms[i][name] &&
		    sim_node_get(w->server[i].node, name_span(name), server_wall(&w->server[i]), &value, &expires_ms) &&
		    (!expires_ms || expires_ms >= w->checker.long_lived_ms[i][name]))
			return true;
	return false;
}

int64_t round_trip_us(const struct plan *p)
{
	return 2 * (p->latency_us + p->jitter_us) + plan_queue_us(p);
}

static bool is_held(const struct world *w, int64_t name, bool *ret_waits)
{
	bool held = false;

	*ret_waits = false;
	for (unsigned d = 0; d < w->plan->daemons; d++) {
		const struct request_sim *q;

		held |= w->checker.lease[d][name].held;
		TAILQ_FOREACH(q, &w->checker.waiters[d][name], in_waiters)
		*ret_waits |= q->wait_ms != 0;
	}
	return held;
}

/* Every wake-up reaches its daemon at once, and no daemon with a queue place is dead. */
static bool all_is_heard(const struct world *w)
{
	if (w->plan->heard_percent < 100 || w->plan->echo_percent > 0 || w->now < w->deaf_until || w->flaps)
		return false;
	for (unsigned d = 0; d < w->plan->daemons; d++)
		for (unsigned i = 0; i < w->plan->nodes; i++)
			if (daemon_has_server(&w->daemon[d], i) && w->daemon[d].subscriber[i].from > w->now)
				return false;
	return true;
}

static void check_woken(struct world *w, int64_t name)
{
	int64_t free = w->now - w->checker.free_since[name];

	if (w->checker.free_since[name] == INT64_MAX || !all_is_heard(w))
		w->checker.unlocked[name] = false;
	if (!w->checker.unlocked[name] || w->now < w->checker.excused[name])
		return;
	if (free > w->checker.longest_woken)
		w->checker.longest_woken = free;
	if (free > WOKEN_US + 20 * round_trip_us(w->plan))
		checker_fail(w, INVARIANT_L6, name, "%s: unlocked at %lld us, and no waiter was granted it", name_of(name),
			     (long long)w->checker.free_since[name]);
}

/* How long a free name with a waiter may stay free. */
static int64_t free_for_us(const struct world *w)
{
	bool woken = w->plan->heard_percent == 100 && w->plan->echo_percent == 0; /* else the next poll notices a release, within a second */

	return w->flaps ? FLAPPING_US + (woken ? 0 : SEC) + 20 * round_trip_us(w->plan) : 3 * SEC + 50 * round_trip_us(w->plan);
}

/*
 * A daemon of two servers refuses one whose clock is too far from the other's, and then grants nothing. It uses it again within four fifths of the tolerance:
 * see RESTARTS OF REDIS in redlockd(8).
 */
static bool two_are_apart(const struct world *w)
{
	int64_t wall[2];

	for (unsigned d = 0; d < w->plan->daemons; d++) {
		int64_t least = w->daemon[d].conf.clock_tol_us / 4 * 3;
		unsigned n = 0;

		for (unsigned i = 0; i < w->plan->nodes && w->daemon[d].conf.nodes == 2; i++)
			if (daemon_has_server(&w->daemon[d], i))
				wall[n++] = server_wall(&w->server[i]);
		if (n == 2 && (wall[0] - wall[1] > least || wall[1] - wall[0] > least))
			return true;
	}
	return false;
}

void check_progress(struct world *w)
{
	int64_t bound;
	bool apart;

	if (w->strange || !is_calm(w))
		return;
	bound = free_for_us(w);
	apart = two_are_apart(w);
	for (int64_t name = 0; name < w->plan->names; name++) {
		int64_t *since = &w->checker.free_since[name];
		bool waits, held = is_held(w, name, &waits);

		if (held || !waits || apart || outlives_its_lease(w, name))
			*since = INT64_MAX;
		else if (*since == INT64_MAX)
			*since = w->now;
		check_woken(w, name);
		if (*since != INT64_MAX && *since < w->checker.excused[name])
			*since = w->checker.excused[name];
		if (*since != INT64_MAX && !w->flaps && w->now - *since > w->checker.longest_free)
			w->checker.longest_free = w->now - *since;
		if (*since != INT64_MAX && w->flaps && w->now - *since > w->checker.longest_flapping)
			w->checker.longest_flapping = w->now - *since;
		if (*since != INT64_MAX && w->now - *since > bound)
			checker_fail(w, w->flaps ? INVARIANT_L11 : INVARIANT_L1, name, "%s: free since %lld us, though somebody waits", name_of(name),
				     (long long)*since);
	}
}
