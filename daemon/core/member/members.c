/* SPDX-License-Identifier: BSD-2-Clause */
/* See members.h. */
#include "daemon/core/member/members.h"

#include "daemon/base/map.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Quorum arithmetic: pure functions of votes, and of other values of which each store has one. */

int64_t drift_us(int64_t us)
{
	return us / 1000000 * DRIFT_PPM + us % 1000000 * DRIFT_PPM / 1000000;
}

struct instant vote_until(struct instant sent, int64_t lease_us)
{
	return instant_add(sent, lease_us - drift_us(lease_us) - DRIFT_SLACK_US);
}

/* Insertion, smallest first: N is at most nine. */
static void sort_values(const int64_t *value, unsigned nodes, int64_t sorted[NODES_MAX])
{
	for (unsigned i = 0; i < nodes; i++) {
		unsigned at = i;

		for (; at > 0 && sorted[at - 1] > value[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = value[i];
	}
}

int64_t quorum_at_least(const int64_t *value, unsigned nodes)
{
	int64_t sorted[NODES_MAX];

	sort_values(value, nodes, sorted);
	return sorted[nodes - quorum_of(nodes)];
}

int64_t quorum_at_most(const int64_t *value, unsigned nodes)
{
	int64_t sorted[NODES_MAX];

	sort_values(value, nodes, sorted);
	return sorted[quorum_of(nodes) - 1];
}

struct instant votes_deadline(const struct instant until[], unsigned nodes)
{
	int64_t us[NODES_MAX];

	if (nodes == 1)
		return until[0];
	for (unsigned i = 0; i < nodes; i++)
		us[i] = until[i].us;
	return (struct instant){quorum_at_least(us, nodes)};
}

int64_t quarantine_us(int64_t max_lease_us, int64_t max_delay_us)
{
	int64_t longest = max_lease_us + max_delay_us;

	return longest + drift_us(2 * longest) + DRIFT_SLACK_US;
}

int64_t clock_tol_us(unsigned nodes, int64_t max_lease_us, int64_t max_delay_us)
{
	int64_t fifth = (max_lease_us + max_delay_us) / 5;

	return nodes < 2 ? 0 : fifth < CLOCK_TOL_MOST_US ? fifth : CLOCK_TOL_MOST_US;
}

#define SINGLE_US (100 * MSEC) /* at most this many single tokens are granted beyond the limit between two looks at a store */

/*
 * The fence of a server that was never ours may be anything. If a server's clock is wrong, its fence may exceed the limit of all others for years. But
 * instead, the clocks of the others may have been set back. So a fence near those of others, or within the limit by this host's clock, counts as ours.
 */
static bool fences_trust(const struct members *ms, const struct member *m)
{
	if (!m->was_ours || m->fence_seen > FENCE_MOST)
		return false;
	return !m->clock_is_off || m->fence_seen <= ms->fence_most + ms->core->conf.skew_us ||
	       m->fence_seen <= ms->core->wall_us + members_ahead_us(ms);
}

void fences_note(struct members *ms, const struct member *m)
{
	if (m->fence_seen > ms->fence_most && fences_trust(ms, m))
		ms->fence_most = m->fence_seen;
}

int64_t fences_most(struct members *ms)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (!ms->node[i].clock_is_off)
			fences_note(ms, &ms->node[i]);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		fences_note(ms, &ms->node[i]);
	return ms->fence_most;
}

/*
 * How far the fence of m may have come until its quarantine began: the limit by its clock when it was last seen joined, moved on to that moment. In an
 * ordinary join this lifts the fence no further than the clock of the store does, which has gone on for a whole quarantine since.
 */
static int64_t fence_issued(const struct member *m)
{
	int64_t unseen = instant_diff(m->quarantine.since, m->vouched.at);

	return m->issued_us != 0 ? m->issued_us + m->quarantine.since.us + drift_us(unseen > 0 ? unseen : 0) : 0;
}

int64_t fences_floor(struct members *ms, const struct member *m)
{
	int64_t most = fences_most(ms), before = fence_issued(m);

	return (most > before ? most : before) + SINGLE_US;
}

/* Whether a store has answered a question that was sent after this moment. A refusal counts as well: the store is not asked again. */
static bool fence_was_reported(const struct member *other, struct instant since)
{
	return !instant_before(other->clock.sent, since) || (other->asked == ASKED_NOTHING && !instant_before(other->asked_at, since));
}

struct nodeset fences_unreported(const struct members *ms, const struct member *m)
{
	struct nodeset unasked = NODESET_NONE;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (!fence_was_reported(other, m->quarantine.end))
			nodeset_add(&unasked, i);
	}
	return unasked;
}

/* The stores as a set: how many count, whether there is a quorum, their round trips, their clocks, which store leads. It asks nobody and changes no state. */

#define RESERVE_LEAST_US (20 * MSEC)

/* cfg = "<generation>.<16 hex>" over everything that must be the same for daemons to exclude each other. */
static void members_configure(struct members *ms)
{
	static const uint64_t key[2] = {0, 0};
	const struct core_conf *conf = &ms->core->conf;
	char text[2048];
	int n = snprintf(text, sizeof(text), "%s|%" PRIu64 "|%u|%u|%" PRId64 "|%" PRId64 "|%d", conf->set, conf->generation,
	                 conf->nodes, quorum_of(conf->nodes), conf->max_lease_us, conf->max_delay_us, PROTO_VERSION);

	if (n < 0 || (size_t)n >= sizeof(text))
		n = sizeof(text) - 1;
	snprintf(ms->cfg, sizeof(ms->cfg), "%" PRIu64 ".%016" PRIx64, conf->generation, siphash(key, text, (size_t)n));
	snprintf(ms->set_id, sizeof(ms->set_id), "%u.%08" PRIx32, conf->nodes, (uint32_t)siphash(key, conf->set, strlen(conf->set)));
}

void members_init(struct members *ms, struct core *core)
{
	memset(ms, 0, sizeof(*ms));
	ms->core = core;
	ms->trusting = core->conf.trust_first_start;
	ms->trust_until = INSTANT_NEVER;
	members_configure(ms);
	for (unsigned i = 0; i < core->conf.nodes; i++) {
		ms->node[i].index = i;
		ms->node[i].marker = ms->node[i].marker_text[0];
		ms->node[i].timer.kind = TIMER_MEMBER;
		ms->node[i].overtaken_us = core->conf.shared ? core->conf.timeout_us : 0; /* what the previous run sent may still run */
		flow_begin(&ms->node[i].flow, core->conf.window);
	}
}

static const char *const state_word[] = {
	[MEMBER_DOWN] = "down",     [MEMBER_PROBING] = "probing", [MEMBER_QUARANTINED] = "quarantine",
	[MEMBER_JOINED] = "joined", [MEMBER_REFUSED] = "refused",
};

const char *member_state_word(enum member_state state)
{
	return state_word[state];
}

bool members_are_checked(const struct members *ms)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		if (m->state == MEMBER_PROBING || (m->state == MEMBER_DOWN && !m->reason[0]))
			return false;
	}
	return true;
}

unsigned members_usable(const struct members *ms)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		n += member_usable(&ms->node[i]);
	return n;
}

unsigned members_that_may_grant(const struct members *ms)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		n += member_may_grant(&ms->node[i]);
	return n;
}

/* It has been slow for less than the timeout: what can wait for it does. */
static bool member_may_recover(const struct members *ms, const struct member *m)
{
	return m->state == MEMBER_JOINED && m->stalled && instant_diff(ms->core->now, m->stalled_at) < ms->core->conf.timeout_us;
}

static bool members_have_room(const struct members *ms)
{
	unsigned missing = quorum_of(ms->core->conf.nodes);

	for (unsigned i = 0; i < ms->core->conf.nodes && missing; i++)
		missing -= member_usable(&ms->node[i]) && flow_has_room(&ms->node[i].flow);
	return missing == 0;
}

/* hopes: stores that may recover in a moment count as well. */
static bool members_are_too_few(const struct members *ms, bool hopes)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		alive += member_usable(&ms->node[i]) || (hopes && member_may_recover(ms, &ms->node[i]));
	return alive < quorum_of(ms->core->conf.nodes);
}

enum room members_room(const struct members *ms)
{
	if (members_have_room(ms) || members_are_too_few(ms, true))
		return ROOM_FOR_ALL;
	return members_are_too_few(ms, false) ? ROOM_FOR_RELEASES : ROOM_NONE;
}

/* A probe is under way, and has had no more than the time of a command so far; or the store waits for others to tell whose clock jumped. */
static bool member_is_promised(const struct members *ms, const struct member *m)
{
	bool asked = m->asked != ASKED_NOTHING && instant_diff(ms->core->now, m->asked_at) <= ms->core->conf.timeout_us;

	return m->state == MEMBER_PROBING && (asked || m->jump.open) && !m->stalled;
}

bool members_promise_quorum(const struct members *ms)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		n += member_may_grant(&ms->node[i]) || member_is_promised(ms, &ms->node[i]);
	return n >= quorum_of(ms->core->conf.nodes);
}

int64_t members_pending_us(const struct members *ms)
{
	unsigned nodes = ms->core->conf.nodes, may = members_that_may_grant(ms);
	int64_t left[NODES_MAX], end;

	if (may >= quorum_of(nodes))
		return -1;
	for (unsigned i = 0; i < nodes; i++) {
		const struct member *m = &ms->node[i];

		left[i] = INT64_MAX;
		if (member_may_grant(m))
			left[i] = 0;
		else if (m->state == MEMBER_QUARANTINED && !m->stalled && !m->refusal.defect)
			left[i] = instant_diff(instant_max(m->quarantine.end, m->quarantine.ask_until), ms->core->now);
	}
	end = quorum_at_most(left, nodes);
	if (end == INT64_MAX)
		return -1;
	return end > 0 ? end : 0;
}

static int64_t own_bound_us(const struct members *ms)
{
	return ms->core->conf.max_lease_us + ms->core->conf.max_delay_us;
}

int64_t members_bound_us(const struct members *ms)
{
	const struct core_conf *conf = &ms->core->conf;
	int64_t bound = own_bound_us(ms);
	bool over = !instant_before(ms->core->now, ms->other_until);

	for (unsigned i = 0; i < conf->nodes; i++)
		over &= ms->node[i].was_ours;
	if (bound < conf->past_lease_us)
		bound = conf->past_lease_us;
	return bound < ms->other_us && !over ? ms->other_us : bound;
}

void members_note_bound(struct members *ms, int64_t bound_us, bool ours)
{
	int64_t longest;

	if (bound_us < own_bound_us(ms) + MSEC || (ours && bound_us <= ms->other_us))
		return;
	if (ms->other_us < bound_us)
		ms->other_us = bound_us;
	longest = quarantine_us(ms->other_us, 0);
	ms->other_until = instant_add(ms->core->now, longest);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];

		if (!*m->quarantine.marker || !instant_before(m->quarantine.end, instant_add(m->quarantine.since, longest)))
			continue;
		m->quarantine.end = instant_add(m->quarantine.since, longest);
		m->quarantine.ask_until = INSTANT_PAST;
	}
}

bool members_have_taken_over(struct members *ms)
{
	unsigned taken = 0, needed = ((unsigned)strtoul(ms->elder, NULL, 10) + 1) / 2;

	if (!*ms->elder)
		return true; /* as far as is known: a marker may still name one */
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		/* What another daemon has taken over, and this one refuses, is not timed yet. */
		taken += m->ours && strcmp(m->taken, ms->elder) == 0 && *m->quarantine.marker &&
		         !instant_before(ms->core->now, m->quarantine.end);
	}
	ms->elder_is_over |= taken >= needed;
	return ms->elder_is_over;
}

const char *evidence_text(enum evidence why)
{
	static const char *const text[] = {
		[EVIDENCE_EVICTED] = "it evicted keys",
		[EVIDENCE_FENCE] = "its fence fell back",
		[EVIDENCE_FLUSHED] = "its marker is gone: it was flushed, or lost its data",
		[EVIDENCE_SET_BACK] = "its marker was set back",
		[EVIDENCE_TOO_SOON] = "it was joined anew without a quarantine",
		[EVIDENCE_WAS_AHEAD] = "its clock was ahead when it was first seen: keys may have expired early",
		[EVIDENCE_JUMPED] = "its clock jumped ahead: keys may have expired early",
	};

	return text[why];
}

enum defect evidence_defect(enum evidence why)
{
	if (why == EVIDENCE_EVICTED)
		return DEFECT_EVICTS;
	return why == EVIDENCE_WAS_AHEAD || why == EVIDENCE_JUMPED ? DEFECT_CLOCK : DEFECT_NONE;
}

int64_t member_server_ms(const struct member *m, struct instant when)
{
	if (!m->clock.known)
		return 0;
	return (when.us + m->clock.high) / MSEC + 1;
}

int64_t member_server_ms_least(const struct member *m, struct instant when)
{
	if (!m->clock.known)
		return 0;
	return (when.us + m->clock.low - drift_us(instant_diff(when, m->clock.at))) / MSEC - 1;
}

/* --- round trips, clocks, the leading store --- */

int64_t members_rtt_us(const struct members *ms)
{
	int64_t rtt = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (member_usable(&ms->node[i]) && ms->node[i].rtt_us > rtt)
			rtt = ms->node[i].rtt_us;
	return rtt;
}

int64_t members_reserve_us(const struct members *ms)
{
	int64_t reserve = 4 * members_rtt_us(ms);

	return reserve < RESERVE_LEAST_US ? RESERVE_LEAST_US : reserve;
}

int64_t members_answer_us(const struct members *ms)
{
	return 2 * members_rtt_us(ms) + MSEC;
}

/* A moment by the Q-th of these offsets from our clock. */
static int64_t clock_at(const struct members *ms, const int64_t offset[], struct instant when)
{
	int64_t most = quorum_at_least(offset, ms->core->conf.nodes);

	if (most == INT64_MIN)
		return ms->core->wall_us - instant_diff(ms->core->now, when);
	return when.us + most;
}

/* The fence cannot replace the clocks: after a join it is ahead of every clock, and stands still. */
int64_t members_clock_us(const struct members *ms, struct instant when)
{
	int64_t offset[NODES_MAX];

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member_clock *clock = &ms->node[i].clock;

		offset[i] = clock->known ? clock->low + (clock->high - clock->low) / 2 : INT64_MIN;
	}
	return clock_at(ms, offset, when);
}

int64_t members_clock_most_us(const struct members *ms, struct instant when)
{
	int64_t offset[NODES_MAX];

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		offset[i] = ms->node[i].clock.known ? ms->node[i].clock.high : INT64_MIN;
	return clock_at(ms, offset, when);
}

int64_t members_one_clock_us(const struct members *ms, struct instant when)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member_clock *clock = &ms->node[i].clock;

		if (clock->known && member_usable(&ms->node[i]))
			return when.us + clock->high;
	}
	return ms->core->wall_us - instant_diff(ms->core->now, when);
}

/* Highest random weight (Thaler, Ravishankar 1998): when a store is gone, only the names that it led move. Neither seed nor position counts. */
uint64_t member_weight(struct span name, struct span run_id)
{
	static const uint64_t fixed[2] = {0, 0};
	const uint64_t key[2] = {siphash(fixed, run_id.p ? run_id.p : "", run_id.n), 0};

	return siphash(key, name.p, name.n);
}

bool member_is_prompt(const struct members *ms, const struct member *m)
{
	return member_may_grant(m) && !flow_is_overdrawn(&m->flow) && !flow_is_stuck(&m->flow, ms->core->now, members_answer_us(ms));
}

int members_leader(const struct members *ms, struct span name, struct nodeset among)
{
	uint64_t most = 0, weight;
	int leader = -1;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		/* All daemons soon agree which stores are prompt. */
		if (!nodeset_has(among, i) || !member_is_prompt(ms, &ms->node[i]))
			continue;
		weight = member_weight(name, span_of(ms->node[i].run_id));
		if (leader >= 0 && weight <= most)
			continue;
		most = weight;
		leader = (int)i;
	}
	return leader;
}

bool members_were_set_back(const struct members *ms, int64_t fence)
{
	unsigned behind = 0;

	if (fence >= FENCE_MOST)
		return false;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		behind += m->connected && m->clock.known && fence > member_server_ms(m, ms->core->now) * MSEC + members_ahead_us(ms);
	}
	return behind >= quorum_of(ms->core->conf.nodes);
}
