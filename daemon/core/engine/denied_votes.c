/* SPDX-License-Identifier: BSD-2-Clause */
/* See denied_votes.h. */
#include "daemon/core/engine/denied_votes.h"

#include "daemon/core/round/engine_data.h"

#include <string.h>

void denied_votes_note_key(struct lease *x, const struct answer *a)
{
	if (renewal_is_none(x->renewal))
		return;
	if (a->code == 'M' || a->code == 'B')
		nodeset_add(&x->renewal->gone, a->node);
	else if (a->code != 'Q' && a->code != 'F')
		nodeset_remove(&x->renewal->gone, a->node);
}

/* If the vote is over by now, the key may just have expired. If it stands even now, somebody deleted the key. */
void denied_votes_note(struct engine *e, struct lease *x, const struct answer *a)
{
	struct renewal *b;

	if (!instant_before(e->core->now, x->votes[a->node]))
		return;
	b = lease_renewal(&e->table, x);
	b->stood = instant_max(b->stood, lease_deadline(x, e->core->conf.nodes));
	nodeset_add(&b->denied, a->node);
	b->denied_at = e->core->now;
	b->confirmed = NODESET_NONE;
	if (a->code != 'A')
		return;
	metric_add(&e->core->metrics, METRIC_REASSERTIONS, 1);
	if (core_may_log(e->core, BURST_REASSERTED))
		core_log(e->core, LOG_NOTICE, "reasserted", "name=%s node=%s", core_quoted(e->core, name_unescaped(name_text(x->name))),
		         e->core->conf.label[a->node]);
}

/* This store was asked after the last denial was heard, and had the key: so the keys of the two stores were not missing at the same time. */
void denied_votes_confirm(const struct engine *e, struct lease *x, const struct round *r, unsigned node)
{
	struct nodeset standing = NODESET_NONE;

	if (!nodeset_any(x->renewal->denied) || instant_before(r->calls.sent[node], x->renewal->denied_at))
		return;
	nodeset_add(&x->renewal->confirmed, node);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (instant_before(e->core->now, x->votes[i]))
			nodeset_add(&standing, i);
	if (!nodeset_any(nodeset_without(standing, x->renewal->confirmed)))
		x->renewal->denied = NODESET_NONE;
}

void denied_votes_renewed(struct lease *x)
{
	if (x->renewal->stood.us && !instant_before(x->promised.until, x->renewal->stood))
		x->renewal->stood.us = 0;
}

bool denied_votes_is_proven(const struct engine *e, const struct lease *x, const struct answer *a)
{
	struct votes truthful;
	bool tells = nodeset_any(x->renewal->denied) && a->class == ANSWER_EXECUTED && a->code && strchr("ABKMX", a->code);

	if (!tells)
		return false;
	memcpy(truthful.until, x->votes, e->core->conf.nodes * sizeof(x->votes[0]));
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(x->renewal->denied, i))
			truthful.until[i] = INSTANT_PAST;
	return !instant_before(e->core->now, votes_deadline(truthful.until, e->core->conf.nodes));
}
