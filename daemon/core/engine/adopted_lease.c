/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/adopted_lease.h"

#include "daemon/base/mem.h"

#include <string.h>

struct adoption *adoption_new(struct span value, unsigned nodes)
{
	struct adoption *h = mem_alloc(sizeof(*h) + value.n);

	h->left = nodeset_all(nodes);
	h->n = value.n;
	memcpy(h->value, value.p, value.n);
	return h;
}

bool adoption_is_of(const struct lease *x, struct span value)
{
	const struct adoption *h = x->renewal->adoption;

	return span_equal((struct span){h->value, h->n}, value);
}

/* Those of a lease about which there is nothing to find out: of all others the next process asks the stores. */
static struct span adoption_votes(struct core *core, const struct lease *x)
{
	if (x->state != LEASE_HELD || x->shared || x->at_risk || x->broken || x->renewal->doubted)
		return (struct span){0};
	return (struct span){(const char *)x->votes, core->conf.nodes * sizeof(x->votes[0])};
}

/* Also a store whose answer to a renewal nobody will read: it may have put the key back, or may do so yet. */
static struct nodeset adoption_gaps(const struct lease *x)
{
	const struct placed *p = &x->placed;

	return nodeset_or(x->renewal->gaps, nodeset_or(p->unanswered, nodeset_without(p->unknown, p->sure)));
}

struct prior_lease adoption_record(struct core *core, const struct lease *x)
{
	const struct adoption *h = x->renewal->adoption;
	struct prior_lease left = {.name = name_text(x->name), .ttl_us = x->promised.ttl_us,
	                           .deadline = instant_max(lease_deadline(x, core->conf.nodes), x->promised.until)};

	if (x->auto_renew)
		left.deadline = instant_max(left.deadline, x->believed_until);
	left.end = h && h->deadline.us != INSTANT_NEVER.us ? h->deadline : lease_deadline(x, core->conf.nodes);
	left.votes = adoption_votes(core, x);
	left.gaps = adoption_gaps(x);
	left.value = h ? (struct span){h->value, h->n} : value_in_text(core, &x->value);
	return left;
}

void adoption_denied(struct lease *x, unsigned node, bool occupied)
{
	nodeset_remove(&x->renewal->adoption->left, node);
	if (occupied)
		nodeset_add(&x->renewal->adoption->occupied, node);
}

void adoption_over(struct lease *x)
{
	if (!x->renewal->adoption)
		return;
	mem_free(x->renewal->adoption);
	x->renewal->adoption = NULL;
}

bool adoption_is_denied(const struct lease *x, unsigned nodes)
{
	const struct adoption *h = x->renewal->adoption;

	return nodeset_count(nodeset_or(h->left, h->occupied)) < quorum_of(nodes);
}

struct instant adoption_end(const struct lease *x)
{
	struct instant end = instant_min(x->renewal->adoption->hopeless, x->renewal->adoption->deadline);

	return x->renewal->adoption->deadline.us == INSTANT_NEVER.us ? end : instant_add(end, -loss_lead_us(x->ttl_us));
}

int64_t adoption_rest_us(const struct lease *x, struct instant now)
{
	int64_t left = instant_diff(x->renewal->adoption->deadline, now) + DRIFT_SLACK_US;

	return left + drift_us(left + drift_us(left));
}
