/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Split votes. Contenders that split one parallel round would split the next one as well. So for a while each asks one store first, the same on all daemons,
 * and the others only if that store grants: one contender wins there, and then everywhere. That costs one round trip more. Daemons that see different stores
 * alive may ask different stores first: that is a parallel round again, after one more pause of random length. A value that stays at the first store for longer
 * than a rival's round lasts is no rival's: the round asks the next store instead.
 * See ALGORITHMS.md, Split votes.
 */
#include "daemon/core/engine/split_vote.h"

#define LEADS_MOST 8
#define LEADS_US SEC
#define RTT_LEAST_US 200
#define DOUBLINGS_MOST 6
#define LASTING_US (100 * MSEC)
#define PAUSE_LONG_US (300 * MSEC) /* and a few round trips: the key that splits the votes may end any moment, and no message tells of that */
#define PAUSE_MOST_US SEC
#define STOOD_MOST_MS  (UINT32_C(30) * 24 * 3600 * 1000) /* a month: what is longer does not count, because since_ms wraps */
#define RIVAL_LEAST_US (20 * MSEC) /* as long as a second round, see acquire.c */

int split_take_leader(const struct engine *e, struct contender *k)
{
	if (k->leads == 0 || !instant_before(e->core->now, k->lead_until))
		return -1;
	k->leads--;
	return members_leader(&e->members, name_text(k->name), nodeset_all(NODES_MAX));
}

static uint32_t split_now_ms(const struct engine *e)
{
	return (uint32_t)(e->core->now.us / MSEC);
}

static uint32_t split_value(const struct round *r, unsigned node)
{
	return nodeset_has(r->taken, node) ? (uint32_t)r->taken_by[node] | 1 : 0;
}

void split_remember(const struct engine *e, struct contender *k, const struct round *r)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		uint32_t value = split_value(r, i);

		if (!nodeset_has(nodeset_or(r->granted, r->refused), i))
			continue;
		if (k->stood[i].value != value)
			k->stood[i].since_ms = split_now_ms(e);
		else if (split_now_ms(e) - k->stood[i].since_ms > STOOD_MOST_MS)
			k->stood[i].since_ms = split_now_ms(e) - STOOD_MOST_MS;
		k->stood[i].value = value;
	}
}

/* For how long a quorum has had this value, as far as is known; -1: it has another one, or none. */
static int64_t split_stood_ms(const struct engine *e, const struct contender *k, uint32_t value)
{
	int64_t stood[NODES_MAX];

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		stood[i] = k->stood[i].value == value ? (int64_t)(split_now_ms(e) - k->stood[i].since_ms) : -1;
	return quorum_at_least(stood, e->core->conf.nodes);
}

int64_t split_seen_ms(const struct engine *e, const struct contender *k)
{
	int64_t most = -1;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		int64_t stood = k->stood[i].value ? split_stood_ms(e, k, k->stood[i].value) : -1;

		most = stood > most ? stood : most;
	}
	return most;
}

/*
 * Whether the value at this store has stood there for longer than a rival's round lasts. Then somebody holds the name, or the daemon that placed the value has
 * died or does not reach the store.
 */
static bool split_has_stood(const struct engine *e, const struct round *r, unsigned node)
{
	const struct contender *k = contender_of_name(r->calls.name);
	int64_t rival = 2 * members_answer_us(&e->members);

	return nodeset_has(r->taken, node) && k->stood[node].value == split_value(r, node) &&
	       (split_now_ms(e) - k->stood[node].since_ms) * MSEC > (rival > RIVAL_LEAST_US ? rival : RIVAL_LEAST_US);
}

int split_next_leader(const struct engine *e, const struct round *r, unsigned node)
{
	unsigned left = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		left += nodeset_has(r->not_asked, i) && member_may_grant(&e->members.node[i]);
	if (left < engine_quorum(e) || !split_has_stood(e, r, node))
		return -1;
	return members_leader(&e->members, name_text(r->calls.name), r->not_asked);
}

/* The stores with the value that splits the votes round after round. */
static struct nodeset split_stands(const struct engine *e, const struct round *r)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(r->taken, i) && r->taken_by[i] == contender_of_name(r->calls.name)->split_by)
			nodeset_add(&nodes, i);
	return nodes;
}

/* Rivals use a new value each round. As long as a quorum has theirs or ours, one contender can win without the stores that have not answered. */
bool split_has_rivals(const struct engine *e, const struct round *r)
{
	const struct contender *k = contender_of_name(r->calls.name);
	struct nodeset free = nodeset_without(round_informative(r), split_stands(e, r));

	return k->same_splits < (k->patient ? RACE_MOST : SPLIT_TRIES - 1) || nodeset_count(free) >= engine_quorum(e);
}

int64_t split_lasting_us(const struct engine *e)
{
	int64_t answer_us = members_answer_us(&e->members);

	return answer_us > LASTING_US ? answer_us : LASTING_US;
}

/* A round that asked the leading node alone does not know what stands at the others. */
static void split_count(const struct engine *e, struct contender *k, const struct round *r, bool leader_taken)
{
	unsigned nodes = e->core->conf.nodes;

	if (nodeset_any(split_stands(e, r))) {
		k->same_splits++;
		return;
	}
	if (leader_taken)
		return;
	k->same_splits = 1;
	/* Which value is the dead daemon's is not known. Each round suspects the value at another store, until one stays. */
	for (unsigned i = k->lost_rounds; i < k->lost_rounds + nodes; i++)
		if (nodeset_has(r->taken, i % nodes)) {
			k->split_by = r->taken_by[i % nodes];
			return;
		}
}

/* From a half to one and a half of it, by chance, so that daemons that met once do not meet again. */
static int64_t split_pause_us(const struct engine *e, int64_t us)
{
	return us / 2 + (int64_t)rng_below(e->rng, (uint64_t)us + 1);
}

/* All stores that refused have said since that the lock was freed: no split, but a release that was on its way. */
static bool split_was_freed(const struct contender *k, const struct round *r)
{
	return nodeset_any(r->taken) && !nodeset_any(nodeset_without(r->taken, k->woken));
}

int64_t split_note(struct engine *e, struct contender *k, const struct round *r, bool leader_taken)
{
	int64_t rtt = members_rtt_us(&e->members), most = PAUSE_LONG_US + 4 * rtt, pause;
	unsigned n = k->lost_rounds < DOUBLINGS_MOST ? k->lost_rounds : DOUBLINGS_MOST;

	metric_add(&e->core->metrics, METRIC_SPLITS, 1);
	split_count(e, k, r, leader_taken);
	if (split_was_freed(k, r))
		return split_pause_us(e, rtt < RTT_LEAST_US ? RTT_LEAST_US : rtt);
	if (!leader_taken) {
		k->leads = LEADS_MOST;
		k->lead_until = instant_add(e->core->now, LEADS_US);
	}
	pause = ++k->lost_rounds > RACE_MOST ? LASTING_US : (rtt < RTT_LEAST_US ? RTT_LEAST_US : rtt) << n;
	most = most < PAUSE_MOST_US ? most : PAUSE_MOST_US;
	return split_pause_us(e, pause < most ? pause : most);
}

/* Not at once: a stream of requests would split the votes without end. */
void split_hurry(struct engine *e, struct contender *k)
{
	int64_t rtt = members_rtt_us(&e->members);
	struct instant soon = instant_add(e->core->now, split_pause_us(e, rtt < RTT_LEAST_US ? RTT_LEAST_US : rtt));

	if (instant_before(soon, k->timer.at))
		heap_set(&e->core->timers, &k->timer, soon);
}
