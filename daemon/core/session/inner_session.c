/* SPDX-License-Identifier: BSD-2-Clause */
/* See inner_session.h. */
#include "daemon/core/session/inner_session.h"

#include "daemon/core/engine/hold.h"

void inner_session_init(struct session *agent, struct session *principal)
{
	agent->principal = principal;
	agent->over = agent->detached = true;
	agent->serial = principal->serial;
	TAILQ_INIT(&agent->claims);
	TAILQ_INIT(&agent->permits);
	TAILQ_INIT(&agent->pendings);
	TAILQ_INIT(&agent->listings);
}

struct claim *inner_session_claim(struct engine *e, struct session *agent, struct span owner, struct remark remark, struct instant asked_at)
{
	struct claim *c = claim_new(&e->table);

	c->session = agent;
	c->let_in = true;
	c->origin = agent->principal->origin;
	claim_set_texts(c, owner, remark);
	claim_begin_asking(&e->table, c);
	c->asking->asked_at = asked_at;
	TAILQ_INSERT_TAIL(&agent->claims, c, in_session);
	return c;
}

void inner_session_set_terms(struct session *agent, bool renew, int64_t ttl_us, int64_t delay_us, struct remark remark)
{
	struct claim *c;

	TAILQ_FOREACH(c, &agent->claims, in_session) {
		if (c->state != CLAIM_WAITING)
			continue;
		c->renew = renew;
		c->ttl_us = ttl_us;
		c->delay_us = delay_us;
		claim_set_remark(c, remark);
	}
}

void inner_session_drop(struct engine *e, struct claim *c)
{
	TAILQ_REMOVE(&c->session->claims, c, in_session);
	if (c->state == CLAIM_HELD)
		hold_unlock(e, c, 0, NULL);
	else if (c->state == CLAIM_LOST)
		hold_acknowledge(e, c, &c->session->claims);
	else
		hold_abandon(e, c, INSTANT_PAST);
}
