/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/lock/lease.h"

#include <string.h>

void placed_note_answer(struct placed *p, const struct answer *a)
{
	nodeset_remove(&p->unanswered, a->node);
	if (a->class != ANSWER_UNKNOWN)
		return;
	nodeset_add(&p->unknown, a->node);
	nodeset_remove(&p->sure, a->node);
}

void lease_promise(struct lease *x, int64_t ttl_us, struct instant until)
{
	x->promised.ttl_us = ttl_us > x->promised.ttl_us ? ttl_us : x->promised.ttl_us;
	x->promised.until = instant_max(x->promised.until, until);
}

bool lease_is_gone(const struct lease *x, unsigned nodes)
{
	return nodeset_count(x->renewal->gone) > nodes - quorum_of(nodes);
}

struct instant lease_tell_at(const struct lease *x, unsigned nodes)
{
	return instant_add(lease_deadline(x, nodes), -loss_lead_us(x->ttl_us));
}

struct instant lease_others_until(const struct lease *x, unsigned nodes, unsigned node)
{
	struct votes others;

	memcpy(others.until, x->votes, nodes * sizeof(x->votes[0]));
	others.until[node] = INSTANT_PAST;
	return votes_deadline(others.until, nodes);
}

int64_t lease_valid_us(const struct lease *x, unsigned nodes, struct instant now)
{
	struct instant end = lease_deadline(x, nodes);

	if (x->renew_ttl_us < x->promised.ttl_us)
		end = instant_min(end, vote_until(now, x->renew_ttl_us));
	return instant_diff(end, now);
}
