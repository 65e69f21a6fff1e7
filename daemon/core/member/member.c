/* SPDX-License-Identifier: BSD-2-Clause */
/* The membership of a store: up, probed, in quarantine, joined, refused, down; and its record for the next process. */
#include "daemon/core/member/membership.h"

#include "daemon/core/member/clock.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Connections, answers to the membership's own questions and timers move a store from state to state. probe.c says what a marker means. */

#define HEALTH_US SEC
#define SOON_US   (HEALTH_US / 4)

#define LOSS_AGAIN_US (15 * 60 * SEC) /* a loss counts as a repeated one if it comes within a quarantine, or so soon after it */
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

/* Its quarantine is over. The store is joined once the others have reported their fences, or the time for that is over. */
static void member_end_quarantine(struct members *ms, struct member *m)
{
	struct nodeset unasked = fences_unreported(ms, m);

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
 * The former server may have granted votes after the other had been promoted, and the quarantine does not allow for these. What was noted of its marker and
 * fence says nothing about the new server.
 */
void member_replaced(struct members *ms, unsigned node)
{
	struct member *m = &ms->node[node];

	members_shorten(ms, node, members_bound_us(ms)); /* no vote is worth more */
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

/* Otherwise its timer makes the log entry later. */
static void member_log_down(struct members *ms, struct member *m)
{
	if (!member_log_rest(ms, m))
		heap_set(&ms->core->timers, &m->timer, instant_add(ms->core->now, LINES_APART_US));
}

void member_down(struct members *ms, unsigned node, enum defect defect, struct span reason)
{
	struct member *m = &ms->node[node];
	char text[sizeof(m->reason)];
	struct trouble why = {text, defect};

	core_keep(text, sizeof(text), reason);
	if (m->connected && defect == DEFECT_CLOSED) /* otherwise the daemon itself ended the connection, and gives the reason */
		why = health_note_break(ms, m, why);
	member_note_overtaken(ms, m);
	m->connected = false;
	m->stalled = false;
	m->asked = ASKED_NOTHING;
	m->blank = false;
	heap_cancel(&ms->core->timers, &m->timer);
	member_become(ms, m, MEMBER_DOWN, why.defect, why.text);
	member_log_down(ms, m);
}

void member_stall(struct members *ms, unsigned node)
{
	struct member *m = &ms->node[node];

	if (m->stalled || !m->connected)
		return;
	health_note_stall(ms, m);
}

/* Keeps waiting for its answer, or for the end of its connection. But its open jump is judged when the time for the others is over. */
static void member_is_late(struct members *ms, struct member *m)
{
	member_stall(ms, m->index);
	if (!m->jump.open)
		return;
	members_judge_jumps(ms);
	if (m->jump.open && instant_before(ms->core->now, jump_look_at(ms, m)))
		heap_set(&ms->core->timers, &m->timer, jump_look_at(ms, m));
}

void member_fired(struct members *ms, struct member *m)
{
	if (!m->connected) {
		member_log_down(ms, m);
		return;
	}
	(void)member_log_rest(ms, m);
	if (instant_diff(ms->core->now, m->timer.at) > ms->core->conf.timeout_us / 2)
		jumps_look_anew(ms);
	if (m->asked != ASKED_NOTHING) {
		member_is_late(ms, m);
		return;
	}
	members_judge_jumps(ms);
	if (m->asked != ASKED_NOTHING)
		return;
	/* With evidence it is probed before it joins: judge_probe() ignores the evidence if the store still has the marker of its quarantine. */
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
	m->markers++;
}

/* A store that is flushed or restarted again and again never gets out of its quarantine, so that is the reason that is shown. */
static void member_note_loss(struct members *ms, struct member *m, struct trouble why)
{
	struct instant now = ms->core->now;

	if (instant_diff(now, m->quarantine.end) >= LOSS_AGAIN_US)
		m->quarantine.losses = 0;
	if (m->quarantine.losses++ == 0)
		m->quarantine.first = now;
	m->logged_state = MEMBER_PROBING; /* each quarantine is logged */
	m->quarantine.cause = why.defect;
	if (m->quarantine.losses < LOSSES_MOST)
		core_keep(m->quarantine.why, sizeof(m->quarantine.why), span_of(why.text));
	else
		snprintf(m->quarantine.why, sizeof(m->quarantine.why), "it had to be quarantined %u times within %" PRId64 " s: %s", m->quarantine.losses,
		         instant_diff(now, m->quarantine.first) / SEC + 1, why.text);
}

/* Case B: the time counts from when this exact value was first seen, or set. */
static void member_note_quarantine(struct members *ms, struct member *m, struct span marker, struct trouble why)
{
	if (!span_equal(marker, span_of(m->quarantine.marker))) {
		struct instant since = ms->core->now;

		if (ms->core->conf.rebooted && !*m->quarantine.marker)
			since.us = 0; /* the boot of this host */
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

/* The server at this address answered at another one before: its votes there are void, or they would count twice. */
static void member_has_moved(struct members *ms, const struct member *m)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		if (i != m->index && strcmp(ms->node[i].run_id, m->run_id) == 0)
			members_shorten(ms, i, members_bound_us(ms)); /* no vote is worth more */
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
	m->denial.defect = DEFECT_NONE; /* a probe reports that now */
	member_become(ms, m, MEMBER_REFUSED, defect, reason);
	member_schedule(ms, m);
}

/* If the quarantine is over already, the store is about to join. It is refused instead while the previous set may still have a quorum. */
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

/* The store could be used, but it is not known yet whose clock jumped. Waiting a moment is better than a quarantine for all daemons. */
static bool member_waits_for_others(struct members *ms, struct member *m, const struct judgement *judged)
{
	if (!m->jump.open || judged->kind == JUDGED_LOST || judged->kind == JUDGED_REFUSED)
		return false;
	jump_look(ms, m);
	heap_set(&ms->core->timers, &m->timer, jump_look_at(ms, m));
	return true;
}

/*
 * Its only answer came so late that it shows little of its clock: the daemon stood still meanwhile, or the store did. Tickets would be wrong by half of that
 * time. If the store is that late again, it is slow, and is used nevertheless.
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

	fences_note(ms, m); /* the probe may show a new run of the server: judge_probe() forgets the fence of the former run */
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
	case JUDGED_LOST: /* the votes that it gave stay in their leases: nobody gets new ones here before they are over */
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
		member_probe(ms, m); /* another daemon was faster: see which marker is there now */
		return;
	}
	core_keep(why, sizeof(why), span_of(m->reason));
	fences_note(ms, m);
	m->fence_seen = m->fence_probed; /* its former fence is no lower bound any more */
	if (m->offered[0] == 'j')
		member_join(ms, m, span_of(m->offered));
	else
		member_time_quarantine(ms, m, span_of(m->offered), (struct trouble){why, m->defect});
}

/* The question failed: for a reason that an administrator must remove, or for one that may pass. */
static void member_failed(struct members *ms, struct member *m, const struct answer *a)
{
	const char *reason = judge_refusal(ms, a);

	m->blank = false;
	if (reason) {
		member_refuse(ms, m, a->defect, reason);
		if (a->defect == DEFECT_SCRIPT || a->defect == DEFECT_LOADING)
			heap_set(&ms->core->timers, &m->timer, instant_add(ms->core->now, SOON_US)); /* it may have passed by then */
		return;
	}
	if (m->state != MEMBER_QUARANTINED)
		member_become(ms, m, MEMBER_PROBING, a->defect, a->text.n ? core_quoted(ms->core, a->text) : "no answer");
	heap_set(&ms->core->timers, &m->timer, instant_add(ms->core->now, SOON_US));
}

/*
 * The first store to answer is joined, or trusted, before there is another clock to compare with its own. It has not been asked for a vote since, because one
 * store is no quorum. Whatever a clock does after the comparison is judged as a jump.
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

/* Goes on with stores whose quarantine is over, as soon as all others have reported their fences. */
static void members_end_quarantines(struct members *ms)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];

		if (m->state != MEMBER_QUARANTINED || m->asked != ASKED_NOTHING || !instant_before(ms->core->now, m->quarantine.ask_until) ||
		    nodeset_any(fences_unreported(ms, m)))
			continue;
		m->quarantine.ask_until = ms->core->now;
		member_fired(ms, m);
	}
}

bool member_answered(struct members *ms, const struct answer *a)
{
	struct member *m = &ms->node[a->node];
	bool probed = m->asked == ASKED_PROBE;

	/* The answer to a question over a former connection comes late, as "unknown". It does not answer a question that was sent later. */
	if (m->asked == ASKED_NOTHING || a->call != member_call(m))
		return a->call > CALL_OF_MEMBER && a->call <= member_call(m);
	m->asked = ASKED_NOTHING;
	m->failed = probed && a->class != ANSWER_EXECUTED;
	if (!m->connected)
		return true;
	if (probed && a->class == ANSWER_EXECUTED && a->probe) {
		member_take_answer(ms, a, m->asked_at);
		members_compare_clocks(ms);
		if (m->asked == ASKED_NOTHING)
			member_follow(ms, m, a);
		health_note_probe(ms, m, a->probe);
		members_judge_jumps(ms); /* it may be asked again because of others: its own answer counts first */
		members_end_quarantines(ms);
		return true;
	}
	member_observe(ms, a, m->asked_at);
	if (m->asked != ASKED_NOTHING)
		return true; /* the observation has led to a question of its own */
	if (a->class != ANSWER_EXECUTED || probed)
		member_failed(ms, m, a);
	else
		member_marked(ms, m, a);
	return true;
}

struct journal_record members_record(struct members *ms)
{
	return (struct journal_record){.kind = JOURNAL_STORES,
	                               .marker = span_of(ms->cfg),
	                               .seen = fences_most(ms),
	                               .delay_us = ms->other_us,
	                               .until_us = ms->other_until.us,
	                               .flags = ms->trusting ? JOURNAL_TRUSTING : 0};
}

static struct journal_record record_begin(const struct members *ms, const struct member *m, enum journal_kind kind)
{
	return (struct journal_record){.kind = kind, .name = span_of(ms->core->conf.label[m->index])};
}

static struct journal_record record_of_marker(const struct members *ms, const struct member *m, int64_t what, const char *marker)
{
	struct journal_record r = record_begin(ms, m, JOURNAL_MARKER);

	r.flags = what;
	r.marker = span_of(marker);
	return r;
}

/* A jump that is not judged yet is left to the next process, which finds it from the clock's earlier bounds. */
static struct clock_bounds clock_to_record(const struct member *m)
{
	if (m->jump.open)
		return m->jump.before;
	return m->clock.known ? clock_now(&m->clock) : (struct clock_bounds){0};
}

static struct journal_record record_of_store(const struct members *ms, const struct member *m)
{
	struct journal_record r = record_begin(ms, m, JOURNAL_STORE);
	struct clock_bounds clock = clock_to_record(m);

	r.value = span_of(m->run_id);
	r.marker = span_of(m->marker);
	r.address = span_of(m->address);
	r.seen = m->fence_seen;
	r.joined = m->fence_joined;
	r.issued_us = m->issued_us;
	r.evicted = m->evicted;
	r.flags = (m->was_ours ? JOURNAL_WAS_OURS : 0) | (clock.known ? JOURNAL_CLOCK : 0) | (clock.known && m->met.done ? JOURNAL_MET : 0);
	r.low_us = clock.low;
	r.high_us = clock.high;
	r.since_us = clock.at.us;
	return r;
}

static struct journal_record record_of_quarantine(const struct members *ms, const struct member *m)
{
	struct journal_record r = record_begin(ms, m, JOURNAL_QUARANTINE);

	r.marker = span_of(m->quarantine.marker);
	r.since_us = m->quarantine.since.us;
	r.until_us = m->quarantine.end.us;
	r.line = span_of(m->quarantine.why);
	r.stamp_us = m->quarantine.first.us;
	r.sequence = m->quarantine.losses;
	r.note = span_of(m->quarantine.cause ? defect_table[m->quarantine.cause].word : "");
	return r;
}

unsigned member_records(const struct members *ms, unsigned node, struct journal_record ret_record[MEMBER_RECORDS_MOST])
{
	const struct member *m = &ms->node[node];
	unsigned n = 0;

	if (!*m->run_id)
		return 0; /* it has never answered */
	ret_record[n++] = record_of_store(ms, m);
	if (*m->vouched.marker) {
		ret_record[n] = record_of_marker(ms, m, JOURNAL_VOUCHED, m->vouched.marker);
		ret_record[n].since_us = m->vouched.at.us;
		ret_record[n++].low_us = m->vouched.clock_us;
	}
	if (*m->replaced.j)
		ret_record[n++] = record_of_marker(ms, m, JOURNAL_REPLACED_J, m->replaced.j);
	if (*m->replaced.q)
		ret_record[n++] = record_of_marker(ms, m, JOURNAL_REPLACED_Q, m->replaced.q);
	if (m->evidence.why) {
		ret_record[n] = record_of_marker(ms, m, JOURNAL_EVIDENCE, m->evidence.marker);
		ret_record[n++].why = m->evidence.why;
	}
	if (*m->quarantine.marker)
		ret_record[n++] = record_of_quarantine(ms, m);
	return n;
}

/* --- back --------------------------------------------------------------------------------------------------------------- */

bool members_restore(struct members *ms, const struct journal_record *r)
{
	ms->trusting &= (r->flags & JOURNAL_TRUSTING) != 0;
	if (!span_equal(r->marker, span_of(ms->cfg)))
		return false;
	ms->fence_most = r->seen;
	ms->other_us = r->delay_us;
	ms->other_until.us = r->until_us;
	return true;
}

static void clock_restore(struct members *ms, struct member *m, const struct journal_record *r)
{
	struct member_clock *c = &m->clock;

	c->known = c->again = true;
	c->low = r->low_us;
	c->high = r->high_us;
	c->at = c->sent = (struct instant){r->since_us};
	c->firm = clock_now(c);
	m->met.done = r->flags & JOURNAL_MET;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		ms->node[i].beside[m->index] = c->firm;
}

static bool store_restore(struct members *ms, struct member *m, const struct journal_record *r)
{
	if (r->value.n >= sizeof(m->run_id) || r->marker.n >= MARKER_MAX || r->low_us > r->high_us)
		return false;
	core_keep(m->run_id, sizeof(m->run_id), r->value);
	core_keep(m->marker_text[0], sizeof(m->marker_text[0]), r->marker);
	m->marker = m->marker_text[0];
	core_keep(m->address, sizeof(m->address), r->address);
	m->fence_seen = r->seen;
	m->fence_joined = r->joined;
	m->issued_us = r->issued_us;
	m->evicted = r->evicted;
	m->was_ours = r->flags & JOURNAL_WAS_OURS;
	if (r->flags & JOURNAL_CLOCK)
		clock_restore(ms, m, r);
	return true;
}

static bool marker_restore(struct member *m, const struct journal_record *r)
{
	if (r->marker.n >= MARKER_MAX)
		return false;
	if (r->flags & JOURNAL_VOUCHED) {
		core_keep(m->vouched.marker, sizeof(m->vouched.marker), r->marker);
		m->vouched.at.us = r->since_us;
		m->vouched.clock_us = r->low_us;
	} else if (r->flags & JOURNAL_REPLACED_J) {
		core_keep(m->replaced.j, sizeof(m->replaced.j), r->marker);
	} else if (r->flags & JOURNAL_REPLACED_Q) {
		core_keep(m->replaced.q, sizeof(m->replaced.q), r->marker);
	} else if (r->flags & JOURNAL_EVIDENCE) {
		/* If a later version knows this reason, it is still a sign that memory was lost. */
		m->evidence.why = r->why <= EVIDENCE_JUMPED ? (enum evidence)r->why : EVIDENCE_FENCE;
		core_keep(m->evidence.marker, sizeof(m->evidence.marker), r->marker);
	}
	return true;
}

static bool quarantine_restore(struct member *m, const struct journal_record *r)
{
	char cause[32];

	if (r->marker.n >= MARKER_MAX)
		return false;
	core_keep(m->quarantine.marker, sizeof(m->quarantine.marker), r->marker);
	core_keep(m->quarantine.why, sizeof(m->quarantine.why), r->line);
	m->quarantine.since.us = r->since_us;
	m->quarantine.end.us = r->until_us;
	m->quarantine.first.us = r->stamp_us;
	m->quarantine.losses = (unsigned)r->sequence;
	core_keep(cause, sizeof(cause), r->note);
	m->quarantine.cause = r->note.n ? defect_of_word(cause) : DEFECT_NONE;
	return true;
}

bool member_restore(struct members *ms, const struct journal_record *r)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];

		if (!span_equal(r->name, span_of(ms->core->conf.label[i])))
			continue;
		return r->kind == JOURNAL_STORE    ? store_restore(ms, m, r)
		       : r->kind == JOURNAL_MARKER ? marker_restore(m, r)
		                                   : quarantine_restore(m, r);
	}
	return true;
}
