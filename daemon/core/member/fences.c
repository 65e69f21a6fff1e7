/* SPDX-License-Identifier: BSD-2-Clause */
/* See fences.h. */
#include "daemon/core/member/fences.h"

#include "daemon/core/member/quorum.h"

#define SINGLE_US (100 * MSEC) /* at most so many single tokens are granted beyond the limit between two looks at a store */

/*
 * The fence of a server that was never ours may be anything. If a server's clock is off, its fence may be beyond the limit of all others for years. But the
 * clocks of the others may have been set back instead. So a fence near those of others, or within the limit by this host's clock, is taken for ours.
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
 * How far the fence of m may have come until its quarantine began: the limit by its clock when it was last seen joined, moved on to that moment.
 * In an ordinary join this lifts the fence no further than the clock of the store does, which has gone on for a whole quarantine since.
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

/* Whether a store has answered a question sent since then. If it refused, that counts as well: it is not asked again. */
static bool fences_heard(const struct member *other, struct instant since)
{
	return !instant_before(other->clock.sent, since) || (other->asked == ASKED_NOTHING && !instant_before(other->asked_at, since));
}

struct nodeset fences_unheard(const struct members *ms, const struct member *m)
{
	struct nodeset unasked = NODESET_NONE;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (!fences_heard(other, m->quarantine.end))
			nodeset_add(&unasked, i);
	}
	return unasked;
}
