/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent of a group or a permit: the session of its claims, which is in no table and has no client. What it has does not count as holds of the client.
 */
#ifndef CORE_INNER_SESSION_H
#define CORE_INNER_SESSION_H

#include "daemon/core/round/engine_data.h"
#include "daemon/core/session/session.h"

/* Of zeroed memory. principal: the session that the group or the permit is of. */
void inner_session_init(struct session *agent, struct session *principal);
/* A claim of the agent that has yet to ask, by lock_request_ask(). */
struct claim *inner_session_claim(struct engine *e, struct session *agent, struct span owner, struct remark remark, struct instant asked_at);
/* The request was repeated on other terms: they hold for what the agent has not got yet. */
void inner_session_set_terms(struct session *agent, bool renew, int64_t ttl_us, int64_t delay_us, struct remark remark);
/* Gives back what the claim has, or leaves the queue. */
void inner_session_drop(struct engine *e, struct claim *c);

#endif
