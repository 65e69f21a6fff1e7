/* SPDX-License-Identifier: BSD-2-Clause */
/* See fences.h. */
#include "daemon/core/fences.h"

#include "daemon/core/quorum.h"

#define SINGLE_US (100 * MSEC) /* so many tokens at most are granted one by one, beyond the limit, while a store is not looked at */

/*
 * The fence of a server that was never ours may be anything. Where a server's clock is off, it may stand beyond the limit of all others for years.
 * But it may also be the others whose clocks were set back: what is near the fences of others, or within the limit of this host's clock, is one of ours.
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

static int64_t fences_most(struct members *ms)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (!ms->node[i].clock_is_off)
			fences_note(ms, &ms->node[i]);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		fences_note(ms, &ms->node[i]);
	return ms->fence_most;
}

/*
 * How far its fence may have come until its quarantine began: as far as its clock let it then, reckoned on from when the store was last seen joined.
 * An ordinary join is lifted no further by this than by the clock of the store, which has gone on for a whole quarantine since.
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

/* One that refused to answer is not asked again. */
static bool fences_heard(const struct member *other, struct instant since)
{
	return !instant_before(other->clock.sent, since) || (other->asked == ASKED_NOTHING && !instant_before(other->asked_at, since));
}

struct nodeset fences_unasked(const struct members *ms, const struct member *m)
{
	struct nodeset unasked = NODESET_NONE;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (!fences_heard(other, m->quarantine.end))
			nodeset_add(&unasked, i);
	}
	return unasked;
}
