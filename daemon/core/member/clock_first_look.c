/* SPDX-License-Identifier: BSD-2-Clause */
/* See clock_first_look.h. */
#include "daemon/core/member/clock_first_look.h"

#include "daemon/core/member/judge.h"
#include "daemon/core/member/quorum.h"

/* If m is of a minority that was set forward, the median of so many others is the clock of one that was not. */
static bool first_look_has_enough(const struct members *ms, unsigned others)
{
	unsigned minority = ms->core->conf.nodes - quorum_of(ms->core->conf.nodes);

	return others + 1 >= 2 * minority;
}

/* All others that can tell were asked since, and none has an open jump: if that is our stop, it is not allowed for yet in what is known of m. */
static bool first_look_is_told(const struct members *ms, const struct member *m, struct instant since)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other != m && other->connected && other->clock.known && !other->stalled && !other->failed &&
		    (other->jump.open || instant_before(other->clock.sent, since)))
			return false;
	}
	return true;
}

void first_look_note_back(const struct members *ms, struct member *m, int64_t back_us)
{
	int64_t most = ms->core->conf.clock_tol_us;

	m->met.set_back |= most > 0 && !m->met.done && back_us > (m->met.ahead ? 0 : most);
}

void first_look_note_stop(struct member *m, int64_t least_us)
{
	m->met.stop_us += m->met.ahead ? least_us : 0;
}

static int64_t first_look_slack_us(const struct member *m)
{
	return JUMP_SLACK_US + drift_us(instant_diff(m->clock.at, m->met.at));
}

/* The clock of m went on without ours since it seemed to be ahead, so the stop of this host that was found since came later; else it came before. */
static bool first_look_shows_stop(const struct member *m)
{
	return m->clock.low - m->met.high > first_look_slack_us(m);
}

/* The clock of m was set back while this host stood still. */
static bool first_look_went_back(const struct member *m)
{
	return m->met.ahead && m->met.stop_us > 0 && m->met.low - m->clock.high > first_look_slack_us(m);
}

static void first_look_note_ahead(const struct members *ms, struct member *m)
{
	m->met.ahead = true;
	m->met.at = ms->core->now;
	m->met.low = m->clock.low;
	m->met.high = m->clock.high;
	m->met.stop_us = 0;
}

bool first_look_was_ahead(struct members *ms, struct member *m)
{
	int64_t most = ms->core->conf.clock_tol_us, host = ms->core->wall_us - ms->core->now.us, low = m->clock.low;
	struct instant since = m->clock.sure;
	bool asked = m->met.ahead;
	struct middle others;

	/* A clock that was not looked at since our stop was allowed for is a guess. And an open jump is judged first. */
	if (m->met.done || most == 0 || !m->clock.known || m->jump.open || instant_before(m->clock.sent, since))
		return false;
	if (m->met.set_back || first_look_went_back(m)) {
		m->met.ahead = m->met.set_back = false;
		return true;
	}
	if (asked) {
		since = instant_max(since, m->met.at);
		low = m->met.low + (first_look_shows_stop(m) ? m->met.stop_us : 0);
	}
	if ((asked && !first_look_is_told(ms, m, since)) || !judge_median(ms, m, since, &others))
		return false;
	if (low - others.high <= most || low - host <= most) {
		m->met.ahead = false;
		m->met.done = m->clock.high - others.upper_low <= most && first_look_has_enough(ms, others.others);
		return false;
	}
	if (!asked) {
		first_look_note_ahead(ms, m);
		return false;
	}
	m->met.ahead = false;
	m->met.done = true;
	return true;
}
