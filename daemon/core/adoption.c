/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/adoption.h"

#include "daemon/base/mem.h"
#include "daemon/core/journal.h"

#include <string.h>

struct adoption *adoption_new(const struct prior_lease *from, struct instant now)
{
	size_t prior = instant_before(now, from->prior_until) ? from->prior.n : 0;
	struct adoption *h = mem_alloc(sizeof(*h) + from->value.n + 1 + prior);

	h->first = h->n = from->value.n;
	memcpy(h->values, from->value.p, h->n);
	if (prior > 0) {
		h->values[h->n++] = ' ';
		memcpy(h->values + h->n, from->prior.p, prior);
		h->n += prior;
	}
	h->prior_until = from->prior_until;
	return h;
}

static struct span adoption_values(const struct adoption *h)
{
	return (struct span){h->values, h->n};
}

static bool values_have(struct span values, struct span value)
{
	struct span one;

	while (span_word(&values, &one))
		if (span_equal(one, value))
			return true;
	return false;
}

bool adoption_is_of(const struct lease *x, struct span value, struct span prior)
{
	struct span values = adoption_values(x->renewal->adoption), one;

	if (values_have(values, value))
		return true;
	while (span_word(&prior, &one))
		if (values_have(values, one))
			return true;
	return false;
}

/* As many of the newest values as a record has room for. */
static struct span values_newest(struct span values)
{
	struct span rest = values, value;

	for (unsigned n = 0; n < JOURNAL_PRIORS && span_word(&rest, &value); n++)
		;
	return (struct span){values.p, values.n - rest.n};
}

struct prior_lease adoption_record(struct core *core, const struct lease *x)
{
	const struct adoption *h = x->renewal->adoption;
	struct prior_lease left = {.name = name_text(x->name), .ttl_us = x->promised.ttl_us,
	                           .deadline = instant_max(lease_deadline(x, core->conf.nodes), x->promised.until)};

	if (x->auto_renew)
		left.deadline = instant_max(left.deadline, x->believed_until);
	if (h && h->asked && nodeset_any(nodeset_or(h->stands, h->late)) && instant_before(core->now, h->until)) {
		left.prior = values_newest(adoption_values(h));
		left.prior_until = h->until;
	} else if (h && !h->asked) {
		left.value = (struct span){h->values, h->first};
		left.prior = h->n > h->first ? (struct span){h->values + h->first + 1, h->n - h->first - 1} : SPAN("");
		left.prior_until = h->prior_until;
		return left;
	}
	left.value = value_in_text(core, &x->value);
	return left;
}

bool adoption_is_left(const struct lease *x, unsigned node, struct span *ret_values)
{
	const struct adoption *h = x->renewal->adoption;

	if (!h || !nodeset_has(nodeset_or(h->stands, h->late), node))
		return false;
	*ret_values = adoption_values(h);
	return true;
}

void adoption_note(struct lease *x, unsigned node)
{
	if (!x->renewal->adoption)
		return;
	nodeset_remove(&x->renewal->adoption->stands, node);
	nodeset_remove(&x->renewal->adoption->late, node);
}

/* Until when this store may still carry out a command of the previous run, which would put back a value that has been replaced. */
static struct instant adoption_overtaken_until(const struct call_table *calls, const struct lease *x, unsigned node)
{
	return calls_overtaken_until(calls, node, INSTANT_PAST, x->placed.since);
}

void adoption_note_none(const struct call_table *calls, struct lease *x, unsigned node, struct instant asked_at)
{
	adoption_note(x, node);
	if (x->renewal->adoption && instant_before(asked_at, adoption_overtaken_until(calls, x, node)))
		nodeset_add(&x->renewal->adoption->late, node);
}

static struct nodeset adoption_overtaken(const struct call_table *calls, const struct lease *x)
{
	struct nodeset nodes = x->renewal->adoption->late;

	for (unsigned i = 0; i < calls->core->conf.nodes; i++)
		if (instant_before(calls->core->now, adoption_overtaken_until(calls, x, i)))
			nodeset_add(&nodes, i);
	return nodes;
}

struct span adoption_left(const struct call_table *calls, const struct lease *x, struct nodeset *nodes, struct instant *until)
{
	const struct adoption *h = x->renewal->adoption;
	struct nodeset stands = !h ? NODESET_NONE : nodeset_or(h->stands, adoption_overtaken(calls, x));

	if (!nodeset_any(stands) || !instant_before(calls->core->now, h->until))
		return SPAN("");
	*nodes = nodeset_or(*nodes, stands);
	*until = instant_max(*until, h->until);
	return adoption_values(h);
}

void adoption_note_other(struct lease *x, unsigned node)
{
	if (x->renewal->adoption)
		nodeset_add(&x->renewal->adoption->occupied, node);
}

void adoption_leave(struct lease *x)
{
	adoption_over(x);
	x->placed.nodes = NODESET_NONE;
}

void adoption_over(struct lease *x)
{
	if (!x->renewal->adoption)
		return;
	mem_free(x->renewal->adoption);
	x->renewal->adoption = NULL;
}

struct nodeset adoption_possible(const struct lease *x)
{
	return nodeset_or(x->renewal->adoption->stands, x->placed.nodes);
}

bool adoption_is_denied(const struct lease *x, unsigned nodes)
{
	return nodeset_count(nodeset_or(adoption_possible(x), x->renewal->adoption->occupied)) < quorum_of(nodes);
}

struct instant adoption_end(const struct lease *x)
{
	struct instant end = instant_min(x->renewal->adoption->hopeless, x->renewal->adoption->deadline);

	return x->auto_renew ? end : instant_add(end, -loss_lead_us(x->ttl_us));
}

int64_t adoption_rest_us(const struct lease *x, struct instant now)
{
	int64_t left = instant_diff(x->renewal->adoption->deadline, now) + DRIFT_SLACK_US;

	return left + drift_us(left + drift_us(left));
}
