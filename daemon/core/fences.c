/* SPDX-License-Identifier: BSD-2-Clause */
/* See fences.h. */
#include "daemon/core/fences.h"

#include "daemon/core/quorum.h"

#define UNSEEN_US (2 * SEC) /* a joined store is asked once a second at least */

/*
 * The fence of a server that was never ours may be anything. Where a server's clock is off, it may stand beyond the limit of all others for years.
 * But it may also be the others whose clocks were set back: what is near the fences of others is one of ours.
 */
static bool fences_trust(const struct members *ms, const struct member *m)
{
	if (!m->was_ours || m->fence_seen > FENCE_MOST)
		return false;
	return !m->clock_is_off || m->fence_seen <= ms->fence_most + ms->core->conf.skew_us;
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

/* How far its fence may have come by the clock that it had: no script lets a fence run further, single tokens apart. */
static int64_t fence_before_set_back(const struct members *ms, const struct member *m)
{
	bool set_back = m->latest_us > ms->core->now.us + m->clock.high && !MUTATED(SET_BACK_FORGOTTEN);

	return set_back ? m->latest_us + members_ahead_us(ms) + UNSEEN_US : 0;
}

int64_t fences_floor(struct members *ms, const struct member *m)
{
	int64_t most = fences_most(ms), before = fence_before_set_back(ms, m);

	return most > before ? most : before;
}

/* One that refused to answer is not asked again. */
static bool fences_heard(const struct member *other, struct instant since)
{
	return !instant_before(other->clock.sent, since) || (other->asked == MEMBER_IDLE && !instant_before(other->asked_at, since));
}

struct nodeset fences_unheard(const struct members *ms, const struct member *m)
{
	struct nodeset unheard = NODESET_NONE;

	for (unsigned i = 0; i < ms->core->conf.nodes && !MUTATED(JOIN_UNHEARD); i++) {
		const struct member *other = &ms->node[i];

		if (other->connected && !other->stalled && !fences_heard(other, m->quarantine_end))
			nodeset_add(&unheard, i);
	}
	return unheard;
}
