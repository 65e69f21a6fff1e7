/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a store the two questions about its membership, and judges the answer; the only file that writes its state. */
#include "daemon/core/member/membership.h"

#include "daemon/core/member/health.h"
#include "daemon/core/member/members.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Judges a probe, and notes what it shows: is this the store that joined, with its memory intact, under our configuration, and fit to hold locks at all? */

#define BOUND_MOST_MS 31536000000 /* a year: no daemon writes a larger bound into a marker */
#define CLOCK_RIGHT_US (5 * SEC) /* a clock that was within the tolerance for this long is right again, even at its edge */

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

static void judge_sort(int64_t *value, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && value[k] < value[k - 1]; k--) {
			int64_t larger = value[k - 1];

			value[k - 1] = value[k];
			value[k] = larger;
		}
}

bool judge_median(const struct members *ms, const struct member *m, struct instant since, struct middle *ret)
{
	int64_t low[NODES_MAX + 1], high[NODES_MAX + 1];
	size_t n = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other == m || !other->connected || !other->clock.known || instant_before(other->clock.sent, since))
			continue;
		low[n] = other->clock.low;
		high[n++] = other->clock.high;
	}
	ret->others = (unsigned)n;
	if (n < 2) {
		low[n] = high[n] = ms->core->wall_us - ms->core->now.us;
		n++;
	}
	if (n < 2)
		return false;
	judge_sort(low, n);
	judge_sort(high, n);
	ret->low = low[(n - 1) / 2];
	ret->upper_low = low[n / 2];
	ret->high = high[n / 2];
	return true;
}

const char *judge_clock(struct members *ms, struct member *m)
{
	int64_t most = ms->core->conf.clock_tol_us, ahead, behind;
	struct middle others;

	if (most == 0 || !m->clock.known || !judge_median(ms, m, INSTANT_PAST, &others))
		return NULL;
	ahead = m->clock.low - others.high;
	behind = others.low - m->clock.high;
	if (ahead > most || behind > most) {
		m->clock_is_off = true;
		m->clock_off_at = ms->core->now;
	} else if (m->clock_is_off) {
		/* It is right again when clearly within the tolerance, or within it for long: otherwise a clock at the edge would come and go. */
		m->clock_is_off = (ahead > most - most / 5 || behind > most - most / 5) && instant_diff(ms->core->now, m->clock_off_at) < CLOCK_RIGHT_US;
	}
	if (!m->clock_is_off && !m->met.ahead)
		return NULL;
	return judge_text(ms, "its clock is more than %" PRId64 " ms %s the other servers': set it right", most / MSEC, ahead > behind ? "ahead of" : "behind");
}

const char *judge_refusal(struct members *ms, const struct answer *a)
{
	if (a->unsent || a->defect == DEFECT_NONE)
		return NULL;
	switch (a->defect) {
	case DEFECT_CLUSTER:
		return "it is in cluster mode: only a server of its own may hold locks";
	case DEFECT_LOADING:
		return "it is loading its data";
	case DEFECT_REPLICA:
		return "it is a replica: only a master may hold locks";
	case DEFECT_KEY:
		return judge_text(ms, "a key of this daemon there is not what it wrote: %.*s", (int)a->text.n, a->text.p);
	case DEFECT_PERMISSION:
	case DEFECT_AUTH:
		return judge_text(ms, "it does not permit all that locks need: %.*s", (int)a->text.n, a->text.p);
	case DEFECT_MEMORY:
	case DEFECT_REPLICAS:
	case DEFECT_DISK:
		return judge_text(ms, "it refuses writes: %.*s", (int)a->text.n, a->text.p);
	default:
		return judge_text(ms, "it refuses what the daemon asks: %.*s", (int)a->text.n, a->text.p);
	}
}

static struct judgement judged_refused(enum defect defect, const char *reason)
{
	return (struct judgement){JUDGED_REFUSED, reason, defect};
}

static const struct judgement judged_fit;

/* Why a node must not be used whatever its marker says; without a reason if it may be used. */
static struct judgement judge_fitness(struct members *ms, const struct member *m, const struct probe *probe)
{
	if (span_starts(probe->refusal, SPAN("INFO ")))
		return judged_refused(probe->defect, judge_text(ms, "it refuses INFO: %.*s", (int)probe->refusal.n - 5, probe->refusal.p + 5));
	if (probe->run_id.n == 0)
		return judged_refused(DEFECT_OTHER, "INFO tells no run_id");
	if (probe->role.n == 0)
		return judged_refused(DEFECT_OTHER, "INFO tells no role");
	if (!span_equal(probe->role, SPAN("master")))
		return judged_refused(DEFECT_REPLICA, "it is a replica: only a master may hold locks");
	if (probe->loading)
		return judged_refused(DEFECT_LOADING, "it is loading its data");
	if (probe->maxmemory > 0 && !span_equal(probe->policy, SPAN("noeviction")))
		return judged_refused(DEFECT_EVICTS, judge_text(ms, "maxmemory-policy is %.*s, which evicts locks: set noeviction",
		                                               (int)probe->policy.n, probe->policy.p));
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other != m && other->connected && span_equal(probe->run_id, span_of(other->run_id)) &&
		    (other->state != MEMBER_REFUSED || other->index < m->index))
			return judged_refused(DEFECT_DUPLICATE, judge_text(ms, "it is the same server as %s", ms->core->conf.label[i]));
	}
	return judged_fit;
}

static bool judge_is_set_back(const struct member *m, struct span marker)
{
	return marker.n > 0 && (span_equal(marker, span_of(m->replaced.j)) || span_equal(marker, span_of(m->replaced.q)));
}

/* If evidence does not come from a probe, or comes from one without a marker, its marker is empty and stays so: no marker in a later probe clears it. */
static void suspect(struct member *m, enum evidence why, struct span marker)
{
	if (!m->evidence.why || *m->evidence.marker)
		core_keep(m->evidence.marker, sizeof(m->evidence.marker), marker);
	m->evidence.why = why;
}

/* The next probe may find a larger fence again, since other daemons go on granting. If the marker is another one by then, that marker decides. */
void judge_fence_fell(struct member *m)
{
	suspect(m, EVIDENCE_FENCE, span_of(m->marker));
}

/*
 * Evidence of lost memory that the marker does not show. The fence is compared with the one seen before the probe was sent: answers over other connections
 * may have shown a larger one since.
 */
static void judge_suspect(struct member *m, const struct answer *a)
{
	struct span marker = a->probe->marker;
	bool same = span_equal(a->probe->run_id, span_of(m->run_id));

	/* The marker is another one: a quarantine has begun after the evidence was seen. */
	if (m->evidence.why && *m->evidence.marker && !span_equal(marker, span_of(m->evidence.marker)))
		m->evidence.why = EVIDENCE_NONE;
	if (same) {
		if (a->probe->evicted > m->evicted)
			suspect(m, EVIDENCE_EVICTED, marker);
		if (a->fence < m->fence_when_asked && m->evidence.why != EVIDENCE_EVICTED) /* eviction may take marker and fence as well */
			suspect(m, marker.n > 0 ? EVIDENCE_FENCE : EVIDENCE_FLUSHED, marker);
	} else {
		m->fence_seen = a->fence; /* another run of the server: the marker tells about its memory */
	}
	if (judge_is_set_back(m, marker))
		suspect(m, EVIDENCE_SET_BACK, marker);
	/* Whoever replaced it, perhaps a daemon of a later generation: if it is there again, the store was set back. */
	if (same && marker.n > 0 && m->marker[0] == 'j' && !span_equal(marker, span_of(m->marker)))
		core_keep(m->replaced.j, sizeof(m->replaced.j), span_of(m->marker));
	m->evicted = a->probe->evicted;
	m->fence_probed = a->fence;
}

struct marker_parts {
	char kind;
	struct span cfg, run_id, replid, set, taken;
	uint64_t generation;
	int64_t bound_us; /* 0: the marker names none */
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

static uint64_t leading_number(struct span text)
{
	uint64_t n = 0;

	for (size_t i = 0; i < text.n && text.p[i] >= '0' && text.p[i] <= '9' && i < 19; i++)
		n = n * 10 + (uint64_t)(text.p[i] - '0');
	return n;
}

static struct marker_parts marker_split(struct span marker)
{
	struct marker_parts parts = {0};
	struct span kind = marker_part(&marker);
	uint64_t bound_ms;

	parts.kind = kind.n == 1 ? kind.p[0] : 0;
	parts.cfg = marker_part(&marker);
	parts.run_id = marker_part(&marker);
	parts.replid = marker_part(&marker);
	parts.generation = leading_number(parts.cfg);
	(void)marker_part(&marker); /* the nonce */
	bound_ms = leading_number(marker_part(&marker));
	parts.bound_us = bound_ms < BOUND_MOST_MS ? (int64_t)bound_ms * MSEC : BOUND_MOST_MS * MSEC;
	parts.set = marker_part(&marker);
	parts.taken = marker_part(&marker);
	return parts;
}

/* What the marker says about configurations before or beside ours. */
static void judge_note_lineage(struct members *ms, struct member *m, const struct marker_parts *parts)
{
	struct span taken = parts->taken;

	m->ours = span_equal(parts->cfg, span_of(ms->cfg));
	members_note_bound(ms, parts->bound_us, m->ours && m->was_ours);
	m->was_ours |= m->ours;
	if (!m->ours)
		taken = parts->generation < ms->core->conf.generation ? parts->set : SPAN("");
	if (span_equal(taken, span_of(ms->set_id)))
		taken = SPAN("");
	core_keep(m->taken, sizeof(m->taken), taken);
	if (taken.n > 0 && !m->ours && !span_equal(taken, span_of(ms->elder)))
		ms->elder_is_over = false;
	if (taken.n > 0)
		core_keep(ms->elder, sizeof(ms->elder), taken);
	ms->elder_is_over |= taken.n > 0 && m->ours && parts->kind == 'j'; /* the daemon that joined the store has waited for that */
}

/* Never overwrite a marker of another configuration at our generation, or of a higher generation: two sets of daemons would not exclude each other. */
static struct judgement judge_configuration(struct members *ms, const struct marker_parts *parts)
{
	uint64_t own = ms->core->conf.generation;

	if (parts->cfg.n == 0 || span_equal(parts->cfg, span_of(ms->cfg)) || parts->generation < own)
		return judged_fit;
	if (parts->generation > own)
		return judged_refused(DEFECT_CONFIGURATION, judge_text(ms, "it belongs to generation %" PRIu64 ", this daemon is configured for %" PRIu64,
		                                                      parts->generation, own));
	return judged_refused(DEFECT_CONFIGURATION,
	                      "it belongs to another configuration (set, nodes, max_lease, max_delay): make them equal, or raise redis.generation to take "
	                      "over");
}

/*
 * The memory is intact if the server is the same process and took no data from another server. Still, its replication id changes when a first replica is
 * attached, and when its backlog is freed for lack of replicas. If the server does not say (see probe.own_data), another id may mean this: it was for a while
 * the replica of a copy of itself that lacked the last writes. In that case run id and marker are ours, and the fence need not have fallen.
 */
static bool judge_memory(const struct marker_parts *parts, const struct probe *probe)
{
	return span_equal(parts->run_id, probe->run_id) && (span_equal(parts->replid, probe->replid) || probe->own_data);
}

/*
 * Another server answers at this address. If the former one is at another address now, its votes here are void, or they would count twice. In that case, or
 * if the new one was at another address before, the noted marker and fence are forgotten.
 */
static void judge_note_move(struct members *ms, struct member *m, struct span run_id)
{
	bool left = false, came = false;

	if (span_equal(run_id, span_of(m->run_id)))
		return;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		left |= other != m && *m->run_id && strcmp(other->run_id, m->run_id) == 0;
		came |= other != m && span_equal(run_id, span_of(other->run_id));
	}
	if (left)
		members_shorten(ms, m->index, members_bound_us(ms)); /* no vote is worth more */
	if (left || came) {
		m->fence_joined = 0;
		m->vouched.marker[0] = '\0';
	}
}

/*
 * For a marker of kind 'j' of our configuration: whether it replaced the one under which we last knew the store to be joined, sooner than a quarantine takes.
 * Our clock and the store's must both show that, because ours stops while this host stands still.
 */
static bool judge_is_too_soon(const struct members *ms, const struct member *m, struct span marker)
{
	int64_t longest = ms->core->conf.max_lease_us + ms->core->conf.max_delay_us, enough = longest - drift_us(longest);

	return *m->vouched.marker && !span_equal(marker, span_of(m->vouched.marker)) && instant_diff(ms->core->now, m->vouched.at) < enough &&
	       ms->core->now.us + m->clock.high - m->vouched.clock_us < enough;
}

/*
 * Trust is still open; or the store was found blank, and was being asked again when the others were trusted. If its answer took longer than the timeout, the
 * store may have been used and flushed meanwhile.
 */
static bool judge_is_trusted(const struct members *ms, const struct member *m)
{
	return ms->trusting || (m->blank && instant_diff(ms->core->now, m->asked_at) < ms->core->conf.timeout_us);
}

struct judgement judge_probe(struct members *ms, struct member *m, const struct answer *a)
{
	const struct probe *probe = a->probe;
	struct marker_parts parts = marker_split(probe->marker);
	struct judgement fit;
	bool ours;

	judge_suspect(m, a);
	judge_note_lineage(ms, m, &parts);
	judge_note_move(ms, m, probe->run_id);
	m->unsaved = probe->unsaved;
	core_keep(m->run_id, sizeof(m->run_id), probe->run_id);
	core_keep(m->replid, sizeof(m->replid), probe->replid);
	fit = judge_fitness(ms, m, probe);
	if (!fit.reason)
		fit = judge_configuration(ms, &parts);
	if (fit.reason)
		return fit;
	ours = m->ours && judge_memory(&parts, probe);
	if (ours && parts.kind == 'q' && !judge_is_set_back(m, probe->marker))
		return (struct judgement){JUDGED_QUARANTINED, "", DEFECT_NONE};
	if (ours && parts.kind == 'j' && !m->evidence.why && a->fence < m->fence_joined)
		suspect(m, EVIDENCE_FENCE, probe->marker); /* in any run: the join lifted the fence above all issued tokens */
	if (ours && parts.kind == 'j' && !m->evidence.why && judge_is_too_soon(ms, m, probe->marker))
		suspect(m, EVIDENCE_TOO_SOON, probe->marker);
	if (ours && parts.kind == 'j' && !m->evidence.why)
		return (struct judgement){JUDGED_JOINED, "", DEFECT_NONE};
	if (probe->marker.n == 0 && judge_is_trusted(ms, m) && !m->evidence.why)
		return (struct judgement){JUDGED_BLANK, "", DEFECT_NONE};
	if (m->evidence.why)
		return (struct judgement){JUDGED_LOST, evidence_text(m->evidence.why), evidence_defect(m->evidence.why)};
	if (probe->marker.n == 0)
		return (struct judgement){JUDGED_LOST, "it carries no marker: new, restarted blank, or flushed", DEFECT_NONE};
	return (struct judgement){JUDGED_LOST, ours ? "" : "it was restarted, replaced or taken over", DEFECT_NONE};
}

static bool member_is_logged(const struct member *m)
{
	return m->logged_state == m->state && strcmp(m->logged, m->reason) == 0;
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
	m->logged_state = m->state;
	core_keep(m->logged, sizeof(m->logged), span_of(m->reason));
}

bool member_log_rest(struct members *ms, struct member *m)
{
	if (m->state != MEMBER_PROBING && !member_is_logged(m) && member_may_log(ms, m, true))
		member_log(ms, m, m->logged_state);
	return m->state == MEMBER_PROBING || member_is_logged(m);
}

void member_become(struct members *ms, struct member *m, enum member_state state, enum defect defect, const char *reason)
{
	enum member_state was = m->state;

	if (was == state && strcmp(m->reason, reason) == 0)
		return;
	m->state = state;
	m->defect = defect;
	core_keep(m->reason, sizeof(m->reason), span_of(reason));
	if (state == MEMBER_PROBING || (!member_is_logged(m) && member_may_log(ms, m, false)))
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
