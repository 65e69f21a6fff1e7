/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/rebase.h"

#define AHEAD_US (10 * MSEC) /* the clocks of the daemons may differ: the others grant tokens by theirs */

/* A store refuses a floor that lies too far ahead of its clock, and then it does not renew the key, either. */
static bool rebase_is_within(const struct engine *e, int64_t floor)
{
	unsigned able = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		able += member_usable(m) && m->clock.known &&
			floor <= member_server_ms_least(m, e->core->now) * MSEC + members_ahead_us(&e->members);
	}
	return able >= engine_quorum(e);
}

static int64_t rebase_least(const struct engine *e, const struct lease *x)
{
	return 1 + (e->tokens.seen > x->token_end ? e->tokens.seen : x->token_end);
}

/*
 * Stores may have given tokens to others since this daemon looked, and may do so before the renewal comes. A floor by the clock, as what grants propose, is
 * beyond those, too. Where the fences are ahead of the clock, some tokens are left to them.
 */
static int64_t rebase_token(const struct engine *e, const struct lease *x)
{
	int64_t least = rebase_least(e, x), by_clock = e->core->wall_us + AHEAD_US, ahead = least + TOKENS_AHEAD;

	ahead = by_clock > ahead ? by_clock : ahead;
	return rebase_is_within(e, ahead + TOKENS_AHEAD) ? ahead : least;
}

bool rebase_is_possible(const struct engine *e, const struct lease *x)
{
	return rebase_is_within(e, rebase_least(e, x) + TOKENS_AHEAD);
}

void rebase_begin(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;

	if (!x->renewal->wants_token)
		return;
	x->renewal->wants_token = false;
	if (r->form == FORM_ALONE || !rebase_is_possible(e, x))
		return; /* it went to a writer meanwhile; or the clocks were set back, and the end of this round is followed by another look */
	r->token = rebase_token(e, x);
	r->range = TOKENS_AHEAD;
	r->sure = x->placed.sure;
}

/* No call that was sent before, over an earlier connection, could still set the value when this store was asked. */
static bool rebase_is_sure(const struct engine *e, const struct round *r, unsigned node)
{
	struct instant sent = r->calls.sent[node];

	return !instant_before(sent, calls_overtaken_until(&e->calls, node, r->lease->placed.since, sent));
}

/* A store whose fence was beyond the floor may have given the token to another value. */
void rebase_note(struct engine *e, struct round *r, const struct answer *a)
{
	if (a->code != 'E' && a->code != 'A')
		return;
	if (a->code == 'E' && r->token && nodeset_has(r->sure, a->node) && a->fence == round_floor(r))
		nodeset_add(&r->lifted, a->node);
	if (rebase_is_sure(e, r, a->node))
		nodeset_add(&r->lease->placed.sure, a->node);
}
