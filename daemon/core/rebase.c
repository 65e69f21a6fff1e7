/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/rebase.h"

void rebase_begin(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	int64_t proposal = tokens_proposal(&e->tokens, e->core);

	if (!x->renewal->wants_token)
		return;
	x->renewal->wants_token = false;
	if (proposal <= e->tokens.seen)
		proposal = e->tokens.seen + 1;
	r->token = proposal > x->token_end ? proposal : x->token_end + 1;
	r->range = TOKENS_AHEAD;
	r->sure = x->placed.sure;
}

/* No call that was sent before, over an earlier connection, could still set the value when the store was asked. */
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
