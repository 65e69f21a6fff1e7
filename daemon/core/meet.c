/* SPDX-License-Identifier: BSD-2-Clause */
/* See meet.h. */
#include "daemon/core/meet.h"

#include "daemon/core/judge.h"
#include "daemon/core/quorum.h"

/* If m is of a minority that was set forward, the median of so many others is the clock of one that was not. */
static bool meet_has_enough(const struct members *ms, unsigned others)
{
	unsigned minority = ms->core->conf.nodes - quorum_of(ms->core->conf.nodes);

	return others + 1 >= 2 * minority;
}

/* All others that can tell have been asked since. */
static bool meet_is_told(const struct members *ms, const struct member *m)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other != m && other->connected && other->clock.known && !other->stalled && !other->failed &&
		    instant_before(other->clock.sent, m->met.at))
			return false;
	}
	return true;
}

bool meet_was_ahead(struct members *ms, struct member *m)
{
	int64_t most = ms->core->conf.clock_tol_us, low;
	struct middle others;
	bool asked;

	/* Since a stop of ours was allowed for, a clock that was not looked at is a guess. */
	m->met.ahead &= !instant_before(m->met.at, m->clock.sure);
	asked = m->met.ahead;
	low = asked ? m->met.low : m->clock.low;
	if (m->met.done || most == 0 || !m->clock.known || (asked ? !meet_is_told(ms, m) : instant_before(m->clock.sent, m->clock.sure)) ||
	    !judge_median(ms, m, asked ? m->met.at : m->clock.sure, &others))
		return false;
	m->met.ahead = low - others.high > most && low - (ms->core->wall_us - ms->core->now.us) > most;
	if (!m->met.ahead) {
		m->met.done = m->clock.high - others.upper_low <= most && meet_has_enough(ms, others.others);
		return false;
	}
	m->met.at = ms->core->now;
	m->met.low = low;
	m->met.done = asked;
	m->met.ahead = !asked;
	return asked;
}
