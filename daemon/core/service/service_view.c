/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon asks the service about itself, without a step: for the supervisor, the log, the page and /metrics. It changes nothing but figures. */
#include "daemon/core/service/service.h"

#include "daemon/core/admin/drain.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/probe.h"
#include "daemon/core/request/all_figures.h"
#include "daemon/core/resume/handover.h"
#include "daemon/core/resume/restore.h"
#include "daemon/core/service/service_data.h"
#include "daemon/core/session/rules.h"

#include <stdio.h>
#include <string.h>

size_t service_status(const struct service *s, char *out, size_t size)
{
	const struct metrics *m = &s->core.metrics;
	int n = snprintf(out, size, "%u/%u stores, %lld sessions, %lld locks, %lld waiters%s", members_serving(&s->engine.members), s->core.conf.nodes,
	                 (long long)m->value[METRIC_SESSIONS], (long long)m->value[METRIC_LOCKS_HELD], (long long)m->value[METRIC_WAITERS],
	                 s->engine.stopping ? ", stopping" : s->engine.draining ? ", draining" : "");

	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

bool service_lets_look(const struct service *s, const struct peer *peer, bool some)
{
	return peer_may_look(&s->core, peer, some);
}

bool service_is_draining(const struct service *s)
{
	return s->engine.draining;
}

bool service_is_drained(struct service *s)
{
	return drain_is_over(&s->context);
}

bool service_sets_timers(const struct service *s)
{
	return s->engine.falls;
}

bool service_is_judging(const struct service *s)
{
	return s->context.revoke.more;
}

bool service_is_settled(const struct service *s)
{
	return members_are_settled(&s->engine.members);
}

bool service_is_awaited(const struct service *s)
{
	return hand_over_is_awaited(&s->context);
}

bool service_has_other_stores(const struct service *s)
{
	return s->context.handed && !s->context.handed->same_stores;
}

bool service_returns(const struct service *s)
{
	return s->context.handed;
}

void service_tally(const struct service *s, const struct sampler *to)
{
	tally(&s->context, to);
}

void service_store(const struct service *s, unsigned node, struct service_store *ret_store)
{
	const struct member *m = &s->engine.members.node[node];

	*ret_store = (struct service_store){.name = core_calls(&s->core, node),
	                                    .state = member_state_told(&s->engine.members, m),
	                                    .cause = defect_table[member_trouble(&s->engine.members, m).defect].word,
	                                    .usable = member_serves(&s->engine.members, m),
	                                    .rtt_us = m->rtt_us,
	                                    .trips = &m->trips,
	                                    .trips_us = m->trips_us,
	                                    .address = strlen(m->address) < sizeof(m->address) - 1 ? m->address : "",
	                                    .run_id = m->run_id,
	                                    .heard = m->clock.at};
}

bool service_has_quorum(const struct service *s)
{
	return members_serving(&s->engine.members) >= quorum_of(s->core.conf.nodes);
}

const struct metrics *service_metrics(struct service *s)
{
	s->core.metrics.value[METRIC_NAMES] = (int64_t)s->engine.table.map.count;
	s->core.metrics.value[METRIC_TIMERS] = (int64_t)s->core.timers.count;
	return &s->core.metrics;
}

const char *service_daemon_id(const struct service *s)
{
	return s->core.daemon_id;
}
