/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts in C: the same checks in the same order. Each operation names its script, and must change with it. Redis counts in milliseconds: a key is
 * live while the server's clock, cut to milliseconds, is not later than its expiry. It must never read a clock, allocate under a steady load, or fail.
 */
#include "daemon/store/memory.h"
#include "daemon/store/job_keep.h"
#include "daemon/store/keyfile.h"
#include "daemon/store/memory_key.h"
#include "daemon/store/sharing.h"

#include <errno.h>
#include <stdio.h>

/* --- lua/break.lua -------------------------------------------------------------------------------------------------------- */

/* Puts the '!' before the value; the TTL stays. */
static void key_break(struct memory *m, const struct call *c, const struct key_view *s, const struct answer *a)
{
	int64_t pttl_ms = memory_pttl(m, s->key, a->server_us / 1000);

	buf_clear(&m->text);
	buf_append(&m->text, "!", 1);
	buf_append(&m->text, s->bare.p, s->bare.n);
	keyspace_set(&m->keys, s->key, c->name, (struct span){buf_begin(&m->text), buf_length(&m->text)},
		     pttl_ms != 0 ? s->key->until : memory_until(m, a->server_us / 1000 + 1));
}

/* A key whose value is not known is from the previous run. Nobody can renew it, so it counts as broken already. */
static void call_break(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	struct key_view s;
	struct span what;
	int64_t pttl_ms;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	s = memory_key_view(m, c, now, a);
	if (!s.there)
		return answer_code(a, 'M', m->fence, -2);
	if (s.key->foreign)
		return answer_occupied(m, &s, a);
	pttl_ms = memory_pttl(m, s.key, a->server_us / 1000);
	what = s.shared ? SPAN("+") : shown_what(s.bare, m->shown);
	if (!span_equal(what, c->value)) {
		answer_code(a, 'B', m->fence, pttl_ms);
		a->found = what;
		return;
	}
	if (what.p[0] == '#' && s.key->value_n) {
		keyspace_drop(&m->keys, s.key);
		return answer_code(a, 'R', m->fence, -2);
	}
	if (s.key->value_n && !s.broken)
		key_break(m, c, &s, a);
	answer_code(a, 'X', m->fence, pttl_ms);
}

/* --- the other scripts ---------------------------------------------------------------------------------------------------- */

/* A key that was kept from an earlier run without its value matches no value. */
static bool holds_value(const struct key_view *s, struct span value)
{
	return s->there && s->key->value_n && !s->shared && span_equal(s->bare, value);
}

/* acquire.lua */
static void call_acquire(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	int64_t limit = memory_limit(m, a), base = m->fence + 1, px_ms = c->px_ms, left_ms;
	struct key_view s;
	bool again;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	if (call_is_late(c, a))
		return answer_code(a, 'L', m->fence, -2);
	s = memory_key_view(m, c, now, a);
	again = holds_value(&s, c->value) && !s.broken;
	if (s.there && !again && !(s.shared && c->form == FORM_SHARED && share_may_join(m, c, &s)))
		return answer_occupied(m, &s, a);
	left_ms = again ? memory_pttl(m, s.key, a->server_us / 1000) : -1;
	if (left_ms > px_ms)
		px_ms = left_ms;
	if (c->fence > base && c->fence <= limit)
		base = c->fence;
	if (c->range > 0 && base + c->range > limit)
		return answer_code(a, 'F', m->fence, -2);
	m->fence = base + c->range;
	if (c->form == FORM_SHARED && !again)
		share_acquire(m, c, &s, base, a);
	else if (answer_set(m, s.key, c, c->value, px_ms, a))
		answer_code(a, 'G', base, px_ms);
}

/* extend.lua */
static void call_extend(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	int64_t px_ms = c->px_ms, left_ms;
	struct key_view s;
	bool again;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	s = memory_key_view(m, c, now, a);
	if (c->form == FORM_SHARED)
		return share_extend(m, c, &s, a);
	if (!s.there && (!c->create || c->exact || call_is_late(c, a)))
		return answer_code(a, 'M', m->fence, -2);
	if (s.there && (s.shared || !s.key->value_n || !call_names(c, s.bare)))
		return answer_in_the_way(m, &s, a);
	if (s.broken && !c->exact)
		return answer_code(a, 'X', m->fence, -2);
	left_ms = s.there ? memory_pttl(m, s.key, a->server_us / 1000) : -1;
	again = holds_value(&s, c->new_value) && !s.broken;
	if (!c->exact && left_ms > px_ms)
		px_ms = left_ms;
	else if (c->exact && (c->at_most || again) && left_ms >= 0 && left_ms < px_ms)
		px_ms = left_ms > 0 ? left_ms : 1;
	if (c->fence > m->fence) {
		if (c->fence > memory_limit(m, a) && !c->beyond)
			return answer_code(a, 'F', m->fence, -2);
		m->fence = c->fence;
	}
	if (answer_set(m, s.key, c, c->new_value, px_ms, a))
		answer_code(a, s.there ? 'E' : 'A', m->fence, px_ms);
}

/* release.lua; ignores the marker, and reports no fence */
static void call_release(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	struct key_view s = memory_key_view(m, c, now, a);

	if (s.shared && c->form != FORM_ALONE) /* otherwise the script does not look for any */
		return share_release(m, c, &s, a);
	if (!s.there || !s.key->value_n || s.shared || !call_names(c, s.bare))
		return answer_code(a, 'N', -1, -2);
	keyspace_drop(&m->keys, s.key);
	answer_code(a, 'R', -1, -2);
}

/* look.lua */
static void call_look(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	struct key_view s;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	s = memory_key_view(m, c, now, a);
	if (s.there)
		return answer_occupied(m, &s, a);
	answer_code(a, 'M', m->fence, -2);
}

/* mark.lua */
static void call_mark(struct memory *m, const struct call *c, struct answer *a)
{
	bool same = span_equal(marker_of(m), c->marker);
	bool late = c->not_after_ms > 0 && a->server_us / 1000 > c->not_after_ms;
	int64_t floor = a->server_us + m->skew_us;

	if (same && !late) {
		if (span_starts(c->new_marker, SPAN("j")))
			fence_lift(m, c->fence > floor ? c->fence : floor);
		buf_clear(&m->marker);
		buf_append(&m->marker, c->new_marker.p, c->new_marker.n);
	}
	answer_code(a, !same ? 'X' : late ? 'L' : 'J', -1, -2);
	a->found = marker_of(m);
}

static void probe_files(struct memory *m)
{
	int error = jobs_error(&m->home->jobs);
	bool loses = m->keys.file && keyfile_lost(m->keys.file);
	int nameless = m->keys.file ? keyfile_nameless(m->keys.file) : 0;

	m->refusal[0] = '\0';
	if (error == JOBS_SHUT)
		snprintf(m->refusal, sizeof(m->refusal), " %s", jobs_trouble(error));
	else if (error)
		snprintf(m->refusal, sizeof(m->refusal), "DEFER its jobs cannot be written: %s%s", jobs_trouble(error),
		         loses ? "; nor can new names" : "");
	else if (nameless)
		snprintf(m->refusal, sizeof(m->refusal),
		         " its file of names cannot be made (%s): if the daemon is killed, the next refuses all for max_lease",
		         strerror(-nameless));
	else if (loses)
		snprintf(m->refusal, sizeof(m->refusal), " new names find no room in its file: if the daemon is killed, the next refuses all for max_lease");
	else if (m->unmarked)
		snprintf(m->refusal, sizeof(m->refusal), " its file state cannot be written (%s): if the daemon is killed, the next may trust an old one",
		         strerror(-m->unmarked));
	m->probe.defect = error ? DEFECT_JOBS : loses || m->unmarked ? DEFECT_FILES : DEFECT_NONE;
	m->probe.lesser = m->probe.defect != DEFECT_NONE;
	m->probe.refusal = span_of(m->refusal);
}

/* probe.lua */
static void call_probe(struct memory *m, struct answer *a)
{
	m->probe.marker = marker_of(m);
	answer_code(a, 'P', m->fence, -2);
	m->probe.called = (struct span){buf_begin(&m->home->name), buf_length(&m->home->name)};
	probe_files(m);
	a->probe = &m->probe;
}

void memory_call(struct memory *m, const struct call *c, struct instant now, struct answer *ret_answer)
{
	struct answer a = {
		.call = c->id,
		.node = c->node,
		.server_us = clock_of(m, now),
		.fence = -1,
		.pttl_ms = -2,
		.found = SPAN(""),
		.text = SPAN(""),
	};

	keyspace_reclaim(&m->keys, now);
	switch (c->kind) {
	case CALL_ACQUIRE:
		call_acquire(m, c, now, &a);
		break;
	case CALL_EXTEND:
		call_extend(m, c, now, &a);
		break;
	case CALL_WITHDRAW: /* one daemon: there are no tickets */
		answer_code(&a, 'X', -1, -2);
		break;
	case CALL_RELEASE:
		call_release(m, c, now, &a);
		break;
	case CALL_LOOK:
		call_look(m, c, now, &a);
		break;
	case CALL_BREAK:
		call_break(m, c, now, &a);
		break;
	case CALL_TABLE:
		table_call(&m->table, marker_of(m), c, &a);
		break;
	case CALL_HOME:
		home_call(m->home, marker_of(m), m->epoch_us, c, now, &a);
		break;
	case CALL_PUBLISH: /* nobody listens */
		answer_code(&a, span_equal(marker_of(m), c->marker) ? 'T' : 'Q', -1, -2);
		a.found = a.code == 'T' ? SPAN("0") : marker_of(m);
		break;
	case CALL_MARK:
		call_mark(m, c, &a);
		break;
	case CALL_PROBE:
		call_probe(m, &a);
		break;
	}
	*ret_answer = a;
}
