/* SPDX-License-Identifier: BSD-2-Clause */
/* See probe.h. */
#include "daemon/core/member/probe.h"

#include "daemon/core/member/fences.h"
#include "daemon/core/member/health.h"

#include <inttypes.h>
#include <stdio.h>

static bool member_is_told(const struct member *m)
{
	return m->told_of == m->state && strcmp(m->told, m->reason) == 0;
}

static void member_log(struct members *ms, struct member *m, enum member_state was)
{
	static const enum log_level level[] = {
		[MEMBER_DOWN] = LOG_WARN,     [MEMBER_PROBING] = LOG_DEBUG, [MEMBER_QUARANTINED] = LOG_WARN,
		[MEMBER_JOINED] = LOG_NOTICE, [MEMBER_REFUSED] = LOG_ERROR,
	};

	core_log(ms->core, level[m->state], "node", "node=%s state=%s was=%s%s%s%s%s", ms->core->conf.label[m->index], member_state_word(m->state),
	         member_state_word(was), m->defect ? " cause=" : "", m->defect ? defect_table[m->defect].word : "", m->reason[0] ? " reason=" : "",
	         m->reason[0] ? core_quoted(ms->core, span_of(m->reason)) : "");
	if (m->state == MEMBER_PROBING)
		return;
	m->told_of = m->state;
	core_keep(m->told, sizeof(m->told), span_of(m->reason));
}

bool member_tell(struct members *ms, struct member *m)
{
	if (m->state != MEMBER_PROBING && !member_is_told(m) && member_may_tell(ms, m, true))
		member_log(ms, m, m->told_of);
	return m->state == MEMBER_PROBING || member_is_told(m);
}

void member_become(struct members *ms, struct member *m, enum member_state state, enum defect defect, const char *reason)
{
	enum member_state was = m->state;

	if (was == state && strcmp(m->reason, reason) == 0)
		return;
	m->state = state;
	m->defect = defect;
	core_keep(m->reason, sizeof(m->reason), span_of(reason));
	if (state == MEMBER_PROBING || (!member_is_told(m) && member_may_tell(ms, m, false)))
		member_log(ms, m, was);
	if (was != MEMBER_JOINED && state == MEMBER_JOINED)
		ms->gained = true;
	metric_add(&ms->core->metrics, METRIC_NODES_JOINED, (state == MEMBER_JOINED) - (was == MEMBER_JOINED));
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
