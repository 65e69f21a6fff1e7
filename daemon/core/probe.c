/* SPDX-License-Identifier: BSD-2-Clause */
/* See probe.h. */
#include "daemon/core/probe.h"

#include "daemon/core/fences.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const state_word[] = {
	[MEMBER_DOWN] = "down",     [MEMBER_PROBING] = "probing", [MEMBER_QUARANTINED] = "quarantine",
	[MEMBER_JOINED] = "joined", [MEMBER_REFUSED] = "refused",
};

const char *member_state_word(enum member_state state)
{
	return state_word[state];
}

void member_become(struct members *ms, struct member *m, enum member_state state, const char *reason)
{
	static const enum log_level level[] = {
		[MEMBER_DOWN] = LOG_WARN,     [MEMBER_PROBING] = LOG_DEBUG, [MEMBER_QUARANTINED] = LOG_WARN,
		[MEMBER_JOINED] = LOG_NOTICE, [MEMBER_REFUSED] = LOG_ERROR,
	};
	bool was = m->state == MEMBER_JOINED;

	if (m->state == state && strcmp(m->reason, reason) == 0)
		return;
	if (state == MEMBER_PROBING || m->told_of != state || strcmp(m->told, reason) != 0)
		core_log(ms->core, level[state], "node", "node=%s state=%s was=%s%s%s", ms->core->conf.label[m->index],
		         state_word[state], state_word[m->state], *reason ? " reason=" : "",
		         *reason ? core_quoted(ms->core, span_of(reason)) : "");
	if (state != MEMBER_PROBING) {
		m->told_of = state;
		core_keep(m->told, sizeof(m->told), span_of(reason));
	}
	m->state = state;
	core_keep(m->reason, sizeof(m->reason), span_of(reason));
	if (!was && state == MEMBER_JOINED)
		ms->gained = true;
	metric_add(&ms->core->metrics, METRIC_NODES_JOINED, (state == MEMBER_JOINED) - was);
}

static void member_ask(struct members *ms, struct member *m, struct call *call)
{
	call->id = CALL_OF_MEMBER | ++m->asks;
	call->node = m->index;
	m->asked = call->kind == CALL_PROBE ? ASKED_PROBE : ASKED_MARK;
	m->asked_at = ms->core->now;
	heap_set(&ms->core->timers, &m->timer, instant_add(ms->core->now, ms->core->conf.timeout_us));
	*core_call(ms->core) = *call;
}

void member_probe(struct members *ms, struct member *m)
{
	struct call call = {.kind = CALL_PROBE};

	m->fence_when_asked = m->fence_seen;
	member_ask(ms, m, &call);
}

void member_mark(struct members *ms, struct member *m, struct span from, char kind)
{
	struct call call = {.kind = CALL_MARK, .marker = from};
	char nonce[17] = "";

	rng_hex(&ms->core->rng, nonce, 16);
	snprintf(m->offered, sizeof(m->offered), "%c|%s|%s|%s|%s|%" PRId64 "|%s|%s", kind, ms->cfg, m->run_id, m->replid, nonce,
	         (members_bound_us(ms) + MSEC - 1) / MSEC, ms->set_id, kind == 'j' && !*m->taken ? ms->elder : m->taken);
	if (kind == 'j') {
		call.fence = fences_floor(ms, m);
		call.not_after_ms = member_server_ms(m, instant_add(ms->core->now, ms->core->conf.timeout_us));
	}
	call.marker.p = arena_copy(&ms->core->out->arena, from.p, from.n);
	call.new_marker = span_of(m->offered);
	member_ask(ms, m, &call);
}
