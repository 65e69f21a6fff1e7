/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, answers to the membership's own questions and timers move a store from state to state. judge.c says what a marker means. */
#include "daemon/core/member/member.h"

#include "daemon/core/member/fences.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/judge.h"
#include "daemon/core/member/clock_jump.h"
#include "daemon/core/member/clock_first_look.h"
#include "daemon/core/member/observe.h"
#include "daemon/core/member/probe.h"
#include "daemon/core/member/quorum.h"
#include "daemon/core/member/trust.h"

#include <inttypes.h>
#include <stdio.h>

#define HEALTH_US SEC
#define SOON_US   (HEALTH_US / 4)

#define LOSS_AGAIN_US (15 * 60 * SEC) /* a loss is one more of the same kind if it comes so soon after a quarantine, or within it */
#define LOSSES_MOST   3

static const struct trouble foreign_loss = {"another daemon found that it may have lost memory", DEFECT_NONE};
static const char not_taken_over[] = "too few servers of the previous configuration are taken over: see CHANGING THE SERVERS in redlockd(8)";

static void member_schedule(struct members *ms, struct member *m)
{
	struct instant at = instant_add(ms->core->now, HEALTH_US);

	if (m->state == MEMBER_QUARANTINED)
		at = instant_min(at, m->quarantine.end);
	heap_set(&ms->core->timers, &m->timer, at);
}

static void member_become_quarantined(struct members *ms, struct member *m)
{
	enum defect cause = m->quarantine.cause ? m->quarantine.cause : DEFECT_FORGETS;

	member_become(ms, m, MEMBER_QUARANTINED, m->quarantine.losses < LOSSES_MOST ? DEFECT_NONE : cause, m->quarantine.why);
}

/* Its quarantine is over. The store is joined once the others have told their fences, or the timeout for that is over. */
static void member_end_quarantine(struct members *ms, struct member *m)
{
	struct nodeset unasked = fences_unheard(ms, m);

	if (instant_before(m->quarantine.ask_until, m->quarantine.end))
		m->quarantine.ask_until = instant_add(ms->core->now, ms->core->conf.timeout_us);
	if (!nodeset_any(unasked) || !instant_before(ms->core->now, m->quarantine.ask_until)) {
		member_mark(ms, m, span_of(m->marker), 'j');
		return;
	}
	member_become_quarantined(ms, m);
	heap_set(&ms->core->timers, &m->timer, m->quarantine.ask_until);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (nodeset_has(unasked, i) && ms->node[i].connected && ms->node[i].asked == ASKED_NOTHING)
			member_probe(ms, &ms->node[i]);
}

/*
 * The former server may have granted votes after the other had been promoted, and the quarantine does not reckon with these. What was noted of its marker and
 * fence says nothing about the other.
 */
void member_replaced(struct members *ms, unsigned node)
{
	struct member *m = &ms->node[node];

	members_lower(ms, node, members_bound_us(ms)); /* no vote is worth more */
	m->fence_joined = 0;
	m->vouched.marker[0] = '\0';
}

void member_up(struct members *ms, unsigned node, struct span address)
{
	struct member *m = &ms->node[node];

	core_keep(m->address, sizeof(m->address), address);
	m->connected = true;
	m->unwatched.defect = DEFECT_NONE;
	m->up_since = ms->core->now;
	m->stalled = false;
	flow_begin(&m->flow, ms->core->conf.window);
	member_become(ms, m, MEMBER_PROBING, DEFECT_NONE, "");
	member_probe(ms, m);
}

/* Else its timer has the log told later. */
static void member_tell_down(struct members *ms, struct member *m)
{
	if (!member_tell(ms, m))
		heap_set(&ms->core->timers, &m->timer, instant_add(ms->core->now, TELL_APART_US));
}

void member_down(struct members *ms, unsigned node, enum defect defect, struct span reason)
{
	struct member *m = &ms->node[node];
	char text[sizeof(m->reason)];
	struct trouble why = {text, defect};

	core_keep(text, sizeof(text), reason);
	if (m->connected && defect == DEFECT_CLOSED) /* else the daemon itself ended the connection, and says why */
		why = health_note_break(ms, m, why);
	member_note_overtaken(ms, m);
	m->connected = false;
	m->stalled = false;
	m->asked = ASKED_NOTHING;
	m->blank = false;
	heap_cancel(&ms->core->timers, &m->timer);
	member_become(ms, m, MEMBER_DOWN, why.defect, why.text);
	member_tell_down(ms, m);
}

void member_stall(struct members *ms, unsigned node)
{
	struct member *m = &ms->node[node];

	if (m->stalled || !m->connected)
		return;
	health_note_stall(ms, m);
}

/* Waits on for its answer, or for the end of its connection. But its open jump is judged when the time of the others is over. */
static void member_is_late(struct members *ms, struct member *m)
{
	member_stall(ms, m->index);
	if (!m->jump.open)
		return;
	members_settle_jumps(ms);
	if (m->jump.open && instant_before(ms->core->now, jump_look_at(ms, m)))
		heap_set(&ms->core->timers, &m->timer, jump_look_at(ms, m));
}

void member_fired(struct members *ms, struct member *m)
{
	if (!m->connected) {
		member_tell_down(ms, m);
		return;
	}
	(void)member_tell(ms, m);
	if (instant_diff(ms->core->now, m->timer.at) > ms->core->conf.timeout_us / 2)
		jumps_look_anew(ms);
	if (m->asked != ASKED_NOTHING) {
		member_is_late(ms, m);
		return;
	}
	members_settle_jumps(ms);
	if (m->asked != ASKED_NOTHING)
		return;
	/* With evidence it is probed before it joins: judge_probe() ignores the evidence if the marker of its quarantine still stands. */
	if (m->state == MEMBER_QUARANTINED && !instant_before(ms->core->now, m->quarantine.end) && !m->jump.open && !m->evidence.why &&
	    members_have_taken_over(ms) && !judge_clock(ms, m))
		member_end_quarantine(ms, m);
	else
		member_probe(ms, m);
}

/*
 * Calls made earlier in this step point to the old marker, so the new one goes into the other buffer. If those calls carried the new marker, a store in
 * quarantine would accept them and give a vote.
 */
static void member_keep_marker(struct member *m, struct span marker)
{
	char *text = m->marker_text[m->marker == m->marker_text[0]];

	if (span_equal(marker, span_of(m->marker)))
		return;
	core_keep(text, MARKER_MAX, marker);
	m->marker = text;
}

/* A store that is flushed or restarted again and again never gets out of its quarantine, so that is the reason that is shown. */
static void member_note_loss(struct members *ms, struct member *m, struct trouble why)
{
	struct instant now = ms->core->now;

	if (instant_diff(now, m->quarantine.end) >= LOSS_AGAIN_US)
		m->quarantine.losses = 0;
	if (m->quarantine.losses++ == 0)
		m->quarantine.first = now;
	m->told_of = MEMBER_PROBING; /* each quarantine is told */
	m->quarantine.cause = why.defect;
	if (m->quarantine.losses < LOSSES_MOST)
		core_keep(m->quarantine.why, sizeof(m->quarantine.why), span_of(why.text));
	else
		snprintf(m->quarantine.why, sizeof(m->quarantine.why), "it had to be quarantined %u times within %" PRId64 " s: %s", m->quarantine.losses,
		         instant_diff(now, m->quarantine.first) / SEC + 1, why.text);
}

/* Case B: the time counts from when this very value was first seen, or set. */
static void member_note_quarantine(struct members *ms, struct member *m, struct span marker, struct trouble why)
{
	if (!span_equal(marker, span_of(m->quarantine.marker))) {
		struct instant since = ms->core->now;

		if (ms->core->conf.rebooted && !*m->quarantine.marker)
			since.us = 0; /* the boot */
		core_keep(m->quarantine.marker, sizeof(m->quarantine.marker), marker);
		member_note_loss(ms, m, why);
		m->quarantine.since = since;
		m->quarantine.end = instant_add(since, quarantine_us(members_bound_us(ms), 0));
	}
	if (m->marker[0] == 'j')
		core_keep(m->replaced.j, sizeof(m->replaced.j), span_of(m->marker));
	member_keep_marker(m, marker);
	m->ours = m->was_ours = true;
	m->evidence.why = EVIDENCE_NONE;
	m->fence_joined = 0;
	m->jump.open = false;
}

/* The server at this address answered at another before: its votes there are void, or they would count twice. */
static void member_has_moved(struct members *ms, const struct member *m)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		if (i != m->index && strcmp(ms->node[i].run_id, m->run_id) == 0)
			members_lower(ms, i, members_bound_us(ms)); /* no vote is worth more */
	}
}

static void member_join(struct members *ms, struct member *m, struct span marker)
{
	if (m->state != MEMBER_JOINED)
		member_has_moved(ms, m);
	if (m->quarantine.marker[0] == 'q')
		core_keep(m->replaced.q, sizeof(m->replaced.q), span_of(m->quarantine.marker));
	core_keep(m->quarantine.marker, sizeof(m->quarantine.marker), marker);
	core_keep(m->vouched.marker, sizeof(m->vouched.marker), marker);
	m->vouched.at = m->asked_at;
	m->vouched.clock_us = m->asked_at.us + m->clock.low;
	member_keep_marker(m, marker);
	m->ours = m->was_ours = true;
	ms->trusting = false;
	member_become(ms, m, MEMBER_JOINED, DEFECT_NONE, "");
	member_schedule(ms, m);
}

static void member_refuse(struct members *ms, struct member *m, enum defect defect, const char *reason)
{
	m->denial.defect = DEFECT_NONE; /* a probe says so now */
	member_become(ms, m, MEMBER_REFUSED, defect, reason);
	member_schedule(ms, m);
}

/* If the quarantine is over already, the store is to join. It is refused instead while the set before may still have a quorum. */
static void member_time_quarantine(struct members *ms, struct member *m, struct span marker, struct trouble why)
{
	member_note_quarantine(ms, m, marker, why);
	if (instant_before(ms->core->now, m->quarantine.end)) {
		member_become_quarantined(ms, m);
		member_schedule(ms, m);
	} else if (members_have_taken_over(ms)) {
		member_end_quarantine(ms, m);
	} else {
		member_refuse(ms, m, DEFECT_CONFIGURATION, not_taken_over);
	}
}

/* A store whose clock is off is not used. But it is marked if it lost memory, and its quarantine runs. */
static bool member_clock_forbids(struct members *ms, struct member *m, const struct judgement *judged, struct span marker)
{
	const char *reason;

	if (judged->kind == JUDGED_LOST || judged->kind == JUDGED_REFUSED || !(reason = judge_clock(ms, m)))
		return false;
	if (judged->kind == JUDGED_QUARANTINED)
		member_note_quarantine(ms, m, marker, foreign_loss);
	member_refuse(ms, m, DEFECT_CLOCK, reason);
	return true;
}

/* The store could be used, but it is not known yet whose clock jumped. To wait a moment is better than a quarantine for all daemons. */
static bool member_waits_for_others(struct members *ms, struct member *m, const struct judgement *judged)
{
	if (!m->jump.open || judged->kind == JUDGED_LOST || judged->kind == JUDGED_REFUSED)
		return false;
	jump_look(ms, m);
	heap_set(&ms->core->timers, &m->timer, jump_look_at(ms, m));
	return true;
}

/*
 * Its only answer came so late that it tells little of its clock: the daemon stood still meanwhile, or the store did. Tickets would be off by half of that
 * time. A store that is as late once more is slow, and is used all the same.
 */
static bool member_is_asked_again(struct members *ms, struct member *m, const struct judgement *judged)
{
	bool rough = !m->clock.again && m->clock.high - m->clock.low > ms->core->conf.timeout_us;

	if (judged->kind != JUDGED_JOINED || m->state == MEMBER_JOINED || !rough)
		return false;
	member_become(ms, m, MEMBER_PROBING, DEFECT_NONE, "its answer came too late to tell its clock: it is asked again");
	member_probe(ms, m);
	return true;
}

/* Its clock is within the tolerance, unless it answered first and could not be compared yet. So it counts at most up to 2 T beyond the clock of the stores. */
static void member_note_issued(struct members *ms, struct member *m, const struct answer *a)
{
	int64_t most = members_clock_us(ms, ms->core->now) + 2 * ms->core->conf.clock_tol_us;
	int64_t limit = (a->server_us < most ? a->server_us : most) + members_ahead_us(ms);

	m->issued_us = (limit > a->fence ? limit : a->fence) - m->asked_at.us;
}

static void member_follow(struct members *ms, struct member *m, const struct answer *a)
{
	struct span marker = a->probe->marker;
	struct judgement judged;

	fences_note(ms, m); /* the probe may show a new run of the server: judge_probe() forgets the fence of the former one */
	judged = judge_probe(ms, m, a);
	m->blank = false;
	if (ms->trusting && marker.n > 0)
		trust_withdraw(ms);
	if (member_waits_for_others(ms, m, &judged) || member_clock_forbids(ms, m, &judged, marker) || member_is_asked_again(ms, m, &judged))
		return;
	switch (judged.kind) {
	case JUDGED_JOINED:
		member_join(ms, m, marker);
		m->fence_joined = a->fence;
		member_note_issued(ms, m, a);
		break;
	case JUDGED_REFUSED:
		member_refuse(ms, m, judged.defect, judged.reason);
		break;
	case JUDGED_QUARANTINED:
		member_time_quarantine(ms, m, marker, foreign_loss);
		break;
	case JUDGED_BLANK:
		m->blank = true;
		member_become(ms, m, MEMBER_PROBING, DEFECT_NONE, "it is new, or has forgotten all: it votes once enough of the others are reached");
		member_schedule(ms, m);
		trust_blank(ms);
		break;
	case JUDGED_LOST: /* votes that it gave stand in their leases: nobody gets one here before they are over */
		member_become(ms, m, MEMBER_PROBING, judged.defect, judged.reason);
		member_mark(ms, m, marker, 'q');
		break;
	}
}

static void member_marked(struct members *ms, struct member *m, const struct answer *a)
{
	char why[sizeof(m->reason)];

	m->blank = false; /* a store that was too late may have been used and flushed meanwhile */
	if (a->code != 'J') {
		member_probe(ms, m); /* somebody was faster: see what stands there now */
		return;
	}
	core_keep(why, sizeof(why), span_of(m->reason));
	fences_note(ms, m);
	m->fence_seen = m->fence_probed; /* what it held before is not what it must hold now */
	if (m->offered[0] == 'j')
		member_join(ms, m, span_of(m->offered));
	else
		member_time_quarantine(ms, m, span_of(m->offered), (struct trouble){why, m->defect});
}

/* The question failed: for a reason that somebody must remove, or for one that may pass. */
static void member_failed(struct members *ms, struct member *m, const struct answer *a)
{
	const char *reason = judge_refusal(ms, a);

	m->blank = false;
	if (reason) {
		member_refuse(ms, m, a->defect, reason);
		if (a->defect == DEFECT_SCRIPT || a->defect == DEFECT_LOADING)
			heap_set(&ms->core->timers, &m->timer, instant_add(ms->core->now, SOON_US)); /* it may be over by then */
		return;
	}
	if (m->state != MEMBER_QUARANTINED)
		member_become(ms, m, MEMBER_PROBING, a->defect, a->text.n ? core_quoted(ms->core, a->text) : "no answer");
	heap_set(&ms->core->timers, &m->timer, instant_add(ms->core->now, SOON_US));
}

/*
 * The first store to answer is joined, or trusted, before there is another clock to compare its own with. It has not been asked for a vote since, because one
 * store is no quorum. What a clock does after it was compared is judged as a jump.
 */
static void members_compare_clocks(struct members *ms)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];
		bool waits = !m->met.done && (m->state == MEMBER_JOINED || m->blank);
		const char *reason;

		if (first_look_was_ahead(ms, m) && m->ours) {
			m->evidence.why = EVIDENCE_WAS_AHEAD;
			m->evidence.marker[0] = '\0';
		}
		if (!waits || !(reason = judge_clock(ms, m)))
			continue;
		m->blank = false;
		member_become(ms, m, MEMBER_PROBING, DEFECT_CLOCK, reason);
		if (m->asked == ASKED_NOTHING)
			member_probe(ms, m);
	}
}

/* Goes on with stores whose quarantine is over, as soon as all others have told their fences. */
static void members_end_quarantines(struct members *ms)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];

		if (m->state != MEMBER_QUARANTINED || m->asked != ASKED_NOTHING || !instant_before(ms->core->now, m->quarantine.ask_until) ||
		    nodeset_any(fences_unheard(ms, m)))
			continue;
		m->quarantine.ask_until = ms->core->now;
		member_fired(ms, m);
	}
}

bool member_answered(struct members *ms, const struct answer *a)
{
	struct member *m = &ms->node[a->node];
	bool probed = m->asked == ASKED_PROBE;

	/* A question over a connection that is gone is answered late, by "unknown". That is no answer to what was asked since. */
	if (m->asked == ASKED_NOTHING || a->call != member_call(m))
		return a->call > CALL_OF_MEMBER && a->call <= member_call(m);
	m->asked = ASKED_NOTHING;
	m->failed = probed && a->class != ANSWER_EXECUTED;
	if (!m->connected)
		return true;
	if (probed && a->class == ANSWER_EXECUTED && a->probe) {
		member_hear(ms, a, m->asked_at);
		members_compare_clocks(ms);
		if (m->asked == ASKED_NOTHING)
			member_follow(ms, m, a);
		health_note_probe(ms, m, a->probe);
		members_settle_jumps(ms); /* it may be asked again for the sake of others: what it has said counts first */
		members_end_quarantines(ms);
		return true;
	}
	member_observe(ms, a, m->asked_at);
	if (m->asked != ASKED_NOTHING)
		return true; /* the observation led to a question of its own */
	if (a->class != ANSWER_EXECUTED || probed)
		member_failed(ms, m, a);
	else
		member_marked(ms, m, a);
	return true;
}
