/* SPDX-License-Identifier: BSD-2-Clause */
/* See vote_gaps.h. */
#include "daemon/core/engine/vote_gaps.h"

#include "daemon/core/round/engine_data.h"

#include <string.h>

void vote_gaps_note_key(struct lease *x, const struct answer *a)
{
	if (renewal_is_none(x->renewal))
		return;
	if (a->code == 'M' || a->code == 'B')
		nodeset_add(&x->renewal->gone, a->node);
	else if (a->code != 'Q' && a->code != 'F')
		nodeset_remove(&x->renewal->gone, a->node);
}

static bool vote_stands(const struct engine *e, const struct lease *x, unsigned node)
{
	return instant_before(e->core->now, x->votes[node]);
}

static struct renewal *vote_gaps_add(struct engine *e, struct lease *x, unsigned node)
{
	struct renewal *b = lease_renewal(&e->table, x);

	nodeset_add(&b->gaps, node);
	b->gaps_until = e->core->now;
	b->confirmed = NODESET_NONE;
	return b;
}

/* If the vote is over by now, the key may just have expired. If it stands even now, somebody deleted the key. */
bool vote_gaps_denied(struct engine *e, struct lease *x, const struct answer *a)
{
	bool denied = vote_stands(e, x, a->node);
	struct renewal *b;

	if (!denied && a->code != 'A')
		return false;
	b = vote_gaps_add(e, x, a->node);
	if (!denied)
		return false;
	b->stood = instant_max(b->stood, lease_deadline(x, e->core->conf.nodes));
	if (a->code != 'A')
		return true;
	metric_add(&e->core->metrics, METRIC_REASSERTIONS, 1);
	if (core_may_log(e->core, BURST_REASSERTED))
		core_log(e->core, LOG_NOTICE, "reasserted", "name=%s node=%s", core_quoted(e->core, name_unescaped(name_text(x->name))),
		         e->core->conf.label[a->node]);
	return true;
}

/* This store was asked after the last gap was over, and had the key: so it has no gap that overlaps with those. */
static void vote_gaps_confirm(const struct engine *e, struct lease *x, const struct round *r, unsigned node)
{
	struct nodeset standing = NODESET_NONE;

	if (!nodeset_any(x->renewal->gaps) || instant_before(r->calls.sent[node], x->renewal->gaps_until))
		return;
	nodeset_add(&x->renewal->confirmed, node);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (vote_stands(e, x, i))
			nodeset_add(&standing, i);
	if (!nodeset_any(nodeset_without(standing, x->renewal->confirmed)))
		x->renewal->gaps = NODESET_NONE;
}

/* A renewal whose answer was lost may have put the key back. */
static bool vote_may_have_gap(const struct engine *e, const struct lease *x, unsigned node)
{
	bool answer_lost = nodeset_has(x->placed.unknown, node) && !nodeset_has(x->placed.sure, node);

	return answer_lost || !vote_stands(e, x, node);
}

void vote_gaps_extended(struct engine *e, struct lease *x, const struct round *r, unsigned node)
{
	if (x->state == LEASE_HELD && vote_may_have_gap(e, x, node))
		vote_gaps_add(e, x, node);
	else
		vote_gaps_confirm(e, x, r, node);
}

void vote_gaps_handed_over(struct engine *e, struct lease *x, struct nodeset nodes)
{
	x->placed.unknown = nodes;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			vote_gaps_add(e, x, i);
}

void vote_gaps_renewed(struct lease *x)
{
	if (x->renewal->stood.us && !instant_before(x->promised.until, x->renewal->stood))
		x->renewal->stood.us = 0;
}

bool vote_gaps_are_too_many(const struct engine *e, const struct lease *x)
{
	struct votes whole;

	memcpy(whole.until, x->votes, e->core->conf.nodes * sizeof(x->votes[0]));
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(x->renewal->gaps, i))
			whole.until[i] = INSTANT_PAST;
	return !instant_before(e->core->now, votes_deadline(whole.until, e->core->conf.nodes));
}
