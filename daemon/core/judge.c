/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges a probe: is this the store that we joined, with its memory intact, under our configuration, and fit to hold locks at all? */
#include "daemon/core/judge.h"

#include "daemon/core/quorum.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define JUMP_SLACK_US (50 * MSEC)

int64_t member_clock_jump(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received)
{
	int64_t low = server_us - received.us, high = server_us - sent.us, jump = 0;

	if (clock->known) {
		int64_t elapsed = instant_diff(received, clock->at);
		int64_t widen = elapsed / 1000000 * DRIFT_PPM + JUMP_SLACK_US;
		int64_t old_low = clock->low - widen, old_high = clock->high + widen;

		if (low > old_high) {
			jump = low - clock->high;
		} else if (high >= old_low) {
			/* Both are true of one clock: keep what both allow. */
			low = low > old_low ? low : old_low;
			high = high < old_high ? high : old_high;
		}
	}
	*clock = (struct member_clock){.known = true, .low = low, .high = high, .at = received};
	return jump;
}

static const char *judge_text(struct members *ms, const char *format, ...) __attribute__((format(printf, 2, 3)));

static const char *judge_text(struct members *ms, const char *format, ...)
{
	char *text = arena_reserve(&ms->core->out->arena, 160);
	va_list list;

	va_start(list, format);
	vsnprintf(text, 160, format, list);
	va_end(list);
	arena_commit(&ms->core->out->arena, 160);
	return text;
}

/* Why a node must not be used whatever its marker says; NULL if it may. */
static const char *judge_fitness(struct members *ms, const struct member *m, const struct probe *probe)
{
	if (probe->run_id.n == 0)
		return "INFO is not permitted or tells no run_id: allow the command 'info'";
	if (!span_equal(probe->role, SPAN("master")))
		return judge_text(ms, "it is a %.*s: only a master may hold locks", (int)probe->role.n, probe->role.p);
	if (probe->loading)
		return "it is loading its data";
	if (probe->maxmemory > 0 && !span_equal(probe->policy, SPAN("noeviction")))
		return judge_text(ms, "maxmemory-policy is %.*s, which evicts locks: set noeviction", (int)probe->policy.n,
		                  probe->policy.p);
	if (m->misconf && probe->bgsave_failed)
		return "it refuses writes (MISCONF) since it cannot save to disk";
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other != m && other->connected && span_equal(probe->run_id, span_of(other->run_id)) &&
		    (other->state != MEMBER_REFUSED || other->index < m->index))
			return judge_text(ms, "it is the same server as %s", ms->core->conf.label[i]);
	}
	return NULL;
}

/* Evidence of lost memory that the marker does not show. The fence is held against what was seen before the probe was sent: other links may be ahead. */
static void judge_suspect(struct member *m, const struct answer *a)
{
	if (span_equal(a->probe->run_id, span_of(m->run_id))) {
		if (a->probe->evicted > m->evicted)
			m->suspect = "it evicted keys";
		if (a->fence < m->fence_when_asked)
			m->suspect = "its fence fell back";
	}
	m->evicted = a->probe->evicted;
}

struct marker_parts {
	char kind;
	struct span cfg, run_id, replid;
	uint64_t generation;
};

static struct span marker_part(struct span *rest)
{
	const char *bar = rest->n ? memchr(rest->p, '|', rest->n) : NULL;
	struct span part = {rest->p, bar ? (size_t)(bar - rest->p) : rest->n};

	if (!rest->n)
		return SPAN("");
	rest->p += part.n + (bar != NULL);
	rest->n -= part.n + (bar != NULL);
	return part;
}

static struct marker_parts marker_split(struct span marker)
{
	struct marker_parts parts = {0};
	struct span kind = marker_part(&marker);

	parts.kind = kind.n == 1 ? kind.p[0] : 0;
	parts.cfg = marker_part(&marker);
	parts.run_id = marker_part(&marker);
	parts.replid = marker_part(&marker);
	for (size_t i = 0; i < parts.cfg.n && parts.cfg.p[i] >= '0' && parts.cfg.p[i] <= '9' && i < 19; i++)
		parts.generation = parts.generation * 10 + (uint64_t)(parts.cfg.p[i] - '0');
	return parts;
}

/* Another configuration at our generation, or a higher one, is never overwritten: two sets of daemons would not exclude each other. */
static const char *judge_configuration(struct members *ms, const struct marker_parts *parts)
{
	uint64_t own = ms->core->conf.generation;

	if (parts->cfg.n == 0 || span_equal(parts->cfg, span_of(ms->cfg)))
		return NULL;
	if (parts->generation > own)
		return judge_text(ms, "it belongs to generation %" PRIu64 ", this daemon is configured for %" PRIu64,
		                  parts->generation, own);
	if (parts->generation == own)
		return "it belongs to another configuration (set, nodes, max_lease, max_delay): make them equal, or raise redis.generation to take over";
	return NULL;
}

struct verdict member_judge(struct members *ms, struct member *m, const struct answer *a)
{
	const struct probe *probe = a->probe;
	struct marker_parts parts = marker_split(probe->marker);
	const char *reason;
	bool ours;

	judge_suspect(m, a);
	if (!probe->bgsave_failed)
		m->misconf = false;
	core_keep(m->run_id, sizeof(m->run_id), probe->run_id);
	core_keep(m->replid, sizeof(m->replid), probe->replid);
	reason = judge_fitness(ms, m, probe);
	if (!reason)
		reason = judge_configuration(ms, &parts);
	if (reason)
		return (struct verdict){VERDICT_REFUSED, reason};
	ours = span_equal(parts.cfg, span_of(ms->cfg)) && span_equal(parts.run_id, probe->run_id) &&
	       span_equal(parts.replid, probe->replid);
	if (ours && parts.kind == 'q')
		return (struct verdict){VERDICT_TIMING, ""};
	if (ours && parts.kind == 'j' && !m->suspect)
		return (struct verdict){VERDICT_JOINED, ""};
	if (probe->marker.n == 0 && ms->trusting && !m->suspect)
		return (struct verdict){VERDICT_BLANK, ""};
	if (m->suspect)
		return (struct verdict){VERDICT_LOST, m->suspect};
	if (probe->marker.n == 0)
		return (struct verdict){VERDICT_LOST, "it carries no marker: new, restarted blank, or flushed"};
	return (struct verdict){VERDICT_LOST, ours ? "" : "it was restarted, replaced or taken over"};
}
