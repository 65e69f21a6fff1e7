/* SPDX-License-Identifier: BSD-2-Clause */
/* What each answer shows about its store: that it is up, the round trip, the clock, the marker; and the trust of a first start. */
#include "daemon/core/member/membership.h"

#include "daemon/core/member/clock.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/members.h"

#define RTT_GRAIN_US MSEC /* what a scheduler may add to a round trip that is much shorter */
#define OVERTAKEN_SLACK_US (25 * MSEC) /* the grain of a store's clock, and its drift between two looks */

static const char jumped[] = "its clock jumped ahead, or ours stood still: the others are asked";

static void member_probe_if_idle(struct members *ms, struct member *m)
{
	if (m->connected && m->asked == ASKED_NOTHING && !m->failed)
		member_probe(ms, m);
}

/* Judges an open jump. While that needs other clocks, asks their stores for their time. */
static void member_judge_jump(struct members *ms, struct member *m)
{
	struct nodeset asks;

	switch (jump_judge(ms, m)) {
	case JUMP_OURS:
		jump_is_ours(ms, m);
		/* The clocks are known now only as roughly as the length of the stop: a second stop, soon after, would be judged by that. */
		for (unsigned i = 0; i < ms->core->conf.nodes; i++)
			member_probe_if_idle(ms, &ms->node[i]);
		break;
	case JUMP_THEIRS:
		jump_is_theirs(ms, m);
		m->evidence.why = EVIDENCE_JUMPED;
		m->evidence.marker[0] = '\0';
		break;
	case JUMP_NONE:
		jump_is_none(ms, m);
		break;
	case JUMP_OPEN:
		asks = jump_asks(ms, m);
		for (unsigned i = 0; i < ms->core->conf.nodes; i++)
			if (nodeset_has(asks, i))
				member_probe_if_idle(ms, &ms->node[i]);
		/* It was asked long ago and hangs, but another call has shown its jump. */
		if (m->connected && !timer_is_set(&m->timer) && instant_before(ms->core->now, jump_look_at(ms, m)))
			heap_set(&ms->core->timers, &m->timer, jump_look_at(ms, m));
		break;
	}
}

void members_judge_jumps(struct members *ms)
{
	struct nodeset open = NODESET_NONE, left;
	struct member *m;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (ms->node[i].jump.open) {
			nodeset_add(&open, i);
			jump_look(ms, &ms->node[i]);
		}
	if (!nodeset_any(open))
		return;
	for (left = open; (m = jump_next(ms, left)); nodeset_remove(&left, m->index))
		member_judge_jump(ms, m);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (nodeset_has(open, i) && !ms->node[i].jump.open)
			member_probe_if_idle(ms, &ms->node[i]);
}

/* Keeps the worst value of all calls that may be under way, in two parts: so earlier calls are forgotten even if keys are set without a pause. */
void member_note_width(const struct members *ms, struct member *m, int64_t us)
{
	struct instant now = ms->core->now;

	if (!instant_before(now, m->width.over))
		m->width.us = 0;
	if (!instant_before(now, m->width.before_over)) {
		m->width.before_us = m->width.us;
		m->width.before_over = m->width.over;
		m->width.us = 0;
	}
	if (us > m->width.us)
		m->width.us = us;
	m->width.over = instant_add(now, ms->core->conf.timeout_us + m->width.us + OVERTAKEN_SLACK_US);
}

/*
 * Commands that were sent while the clock was known only roughly may still be under way, also over the previous connection. If the daemon dials a store and
 * gets no connection, the store is down without having been up: nothing was sent there since. The memory store carries out each command before the next one.
 */
void member_note_overtaken(const struct members *ms, struct member *m)
{
	bool others = !m->connected || instant_before(ms->core->now, instant_add(m->up_since, m->overtaken_us));
	int64_t us;

	if (!ms->core->conf.shared)
		return;
	member_note_width(ms, m, m->clock.high - m->clock.low);
	us = ms->core->conf.timeout_us + (m->width.us > m->width.before_us ? m->width.us : m->width.before_us) + OVERTAKEN_SLACK_US;
	if (!others || us > m->overtaken_us)
		m->overtaken_us = us;
	m->width.us = m->width.before_us = 0;
}

static void member_recovers(struct members *ms, struct member *m)
{
	m->stalled = false;
	ms->gained = true;
}

/*
 * All answers that one pause delayed count as one sample: as in TCP (RFC 6298, 3) one call of each round trip is timed. Pauses and waits are multiples of the
 * round trip, so one sample at most doubles it.
 */
static void member_time_trip(struct members *ms, struct member *m, struct instant sent)
{
	int64_t us = instant_diff(ms->core->now, sent), doubled = 2 * m->rtt_us + RTT_GRAIN_US;
	bool late = us > ms->core->conf.timeout_us;

	if (late) {
		health_note_late(ms, m, sent);
		if (m->rtt_us && instant_before(sent, m->timed_at))
			return;
	} else if (m->rtt_us && !instant_before(m->timed_at, sent)) {
		return;
	}
	if (late || m->late > 0 || m->far_logged || member_is_far(ms, m))
		health_note_trip(ms, m, us);
	else
		m->rtt_us = m->rtt_us ? (7 * m->rtt_us + (us < doubled ? us : doubled)) / 8 : us;
	m->timed_at = ms->core->now;
	m->trips_us += us;
	histogram_add(&m->trips, us);
}

static void member_note_failure(struct members *ms, struct member *m, const struct answer *a)
{
	bool refused = a->class == ANSWER_REFUSED;

	metric_add(&ms->core->metrics, refused ? METRIC_CALLS_REFUSED : METRIC_CALLS_UNKNOWN, 1);
	if (health_note_failure(ms, m, a) && m->asked == ASKED_NOTHING)
		member_probe(ms, m);
	if (refused && !a->unsent && m->connected && m->stalled)
		member_recovers(ms, m);
}

/* The store reports that its marker is not ours, or the daemon has found that out: it gives no vote until it is verified again. Its earlier votes stay. */
static void member_doubt(struct members *ms, struct member *m, const struct answer *a)
{
	/* It has the marker of its join, but a smaller fence than was seen there; or no marker. */
	if (a->code == 'Q' && !a->found.n && (m->state == MEMBER_JOINED || m->state == MEMBER_PROBING) && m->marker[0] == 'j')
		judge_fence_fell(m);
	if (m->state != MEMBER_JOINED)
		return;
	member_become(ms, m, MEMBER_PROBING, DEFECT_NONE, m->evidence.why ? evidence_text(m->evidence.why) : m->jump.open ? jumped : "its marker changed");
	if (m->asked == ASKED_NOTHING)
		member_probe(ms, m);
}

void member_take_answer(struct members *ms, const struct answer *a, struct instant sent)
{
	struct member *m = &ms->node[a->node];

	if (a->class != ANSWER_EXECUTED) {
		member_note_failure(ms, m, a);
		return;
	}
	if (!m->connected)
		return;
	if (m->stalled)
		member_recovers(ms, m);
	if (a->fence > m->fence_seen)
		m->fence_seen = a->fence;
	if (a->server_us) {
		member_time_trip(ms, m, sent);
		jump_note(ms, m, a->server_us, sent);
	}
	if (a->code == 'Q' || m->evidence.why || m->jump.open)
		member_doubt(ms, m, a);
}

void member_observe(struct members *ms, const struct answer *a, struct instant sent)
{
	member_take_answer(ms, a, sent);
	members_judge_jumps(ms);
}

#define TRUST_WAIT_US SEC

static unsigned trust_count_blank(const struct members *ms)
{
	unsigned blank = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		blank += ms->node[i].blank;
	return blank;
}

/* All stores are blank; or a quorum is, and the time for the slower ones is over. */
static bool trust_is_due(const struct members *ms, unsigned blank)
{
	unsigned nodes = ms->core->conf.nodes;

	return blank == nodes || (blank >= quorum_of(nodes) && !instant_before(ms->core->now, ms->trust_until));
}

/* A store that is being asked now follows when it answers: see judge_is_trusted. */
void trust_blank(struct members *ms)
{
	unsigned blank = trust_count_blank(ms);

	if (ms->trusting && ms->trust_until.us == INT64_MAX && blank >= quorum_of(ms->core->conf.nodes))
		ms->trust_until = instant_add(ms->core->now, TRUST_WAIT_US);
	if (ms->trusting && !trust_is_due(ms, blank))
		return;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (ms->node[i].blank && ms->node[i].asked == ASKED_NOTHING)
			member_mark(ms, &ms->node[i], SPAN(""), 'j');
}

void trust_withdraw(struct members *ms)
{
	ms->trusting = false;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];

		if (m->blank && m->asked == ASKED_NOTHING)
			member_mark(ms, m, SPAN(""), 'q');
		m->blank = false;
	}
}
