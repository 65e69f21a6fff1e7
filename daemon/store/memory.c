/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts in C: the same checks in the same order. Each operation names its script, and must change with it.
 * Redis counts in milliseconds: a key is live while the server's clock, cut to milliseconds, is not beyond its expiry.
 * It must never read a clock, allocate under a steady load, or fail.
 */
#include "daemon/store/memory_part.h"

#include "daemon/base/mem.h"
#include "daemon/store/job_keep.h"
#include "daemon/store/keyfile.h"

#include <stdio.h>
#include <string.h>

/* A key that expires at when_ms exists during that millisecond, and not in the next. */
struct instant until_of(const struct memory *m, int64_t when_ms)
{
	return (struct instant){(when_ms + 1) * 1000 - m->epoch_us};
}

int64_t memory_pttl(const struct memory *m, const struct key *key, int64_t now_ms)
{
	if (key->until.us == INSTANT_NEVER.us)
		return -1;
	return (key->until.us + m->epoch_us) / 1000 - 1 - now_ms;
}

void standing_read(struct memory *m, struct standing *s, int64_t now_ms)
{
	s->broken = s->bare.p[0] == '!';
	if (s->broken)
		s->bare = (struct span){s->bare.p + 1, s->bare.n - 1};
	s->shared = share_list_read(&m->shares, s->bare, now_ms);
	if (s->shared && m->shares.count == 0)
		*s = (struct standing){.key = s->key};
}

/* A key that was kept from an earlier run without its value matches no value. */
static bool stands_as(const struct standing *s, struct span value)
{
	return s->there && s->key->value_n && !s->shared && span_equal(s->bare, value);
}

void answer_code(struct answer *a, char code, int64_t fence, int64_t pttl_ms)
{
	a->class = ANSWER_EXECUTED;
	a->code = code;
	a->fence = fence;
	a->pttl_ms = pttl_ms < PTTL_MOST_MS ? pttl_ms : PTTL_MOST_MS;
}

bool memory_is_joined(const struct memory *m, const struct call *c)
{
	return m->fence >= c->seen && span_equal(memory_marker(m), c->marker);
}

void answer_unjoined(const struct memory *m, const struct call *c, struct answer *a)
{
	answer_code(a, 'Q', m->fence, -2);
	if (!span_equal(memory_marker(m), c->marker))
		a->found = memory_marker(m);
}

/* The public part of the share that ends last; one that is broken is shown with its '!', like any other broken value. */
static void answer_shared(struct memory *m, const struct standing *s, struct answer *a)
{
	const struct share_end *last = share_list_last(&m->shares);
	struct span shown = shown_public(last->value);

	answer_code(a, 'S', m->fence, last->ends_ms - a->server_us / 1000);
	a->found = shown;
	if (!s->broken)
		return;
	m->shown[0] = '!';
	if (shown.n > 0)
		memcpy(m->shown + 1, shown.p, shown.n);
	a->found = (struct span){m->shown, 1 + shown.n};
}

void answer_occupied(struct memory *m, const struct standing *s, struct answer *a)
{
	if (s->shared)
		return answer_shared(m, s, a);
	answer_code(a, s->key->foreign ? 'K' : 'B', m->fence, memory_pttl(m, s->key, a->server_us / 1000));
	if (!s->key->foreign)
		a->found = shown_public(key_value(s->key));
}

void answer_in_the_way(struct memory *m, const struct standing *s, struct answer *a)
{
	answer_occupied(m, s, a);
	if (a->code == 'S')
		a->code = 'B';
}

bool answer_set(struct memory *m, struct key *key, const struct call *c, struct span value, int64_t px_ms, struct answer *a)
{
	if (px_ms <= 0 || px_ms > PX_MAX) {
		a->class = ANSWER_UNKNOWN;
		a->text = SPAN("ERR invalid expire time in 'set' command");
		return false;
	}
	keyspace_set(&m->keys, key, c->name, value, until_of(m, a->server_us / 1000 + px_ms));
	return true;
}

/* acquire.lua */
static void call_acquire(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	int64_t limit = memory_limit(m, a), base = m->fence + 1, px_ms = c->px_ms, left_ms;
	struct standing s;
	bool again;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	if (call_is_late(c, a))
		return answer_code(a, 'L', m->fence, -2);
	s = memory_standing(m, c, now, a);
	again = stands_as(&s, c->value) && !s.broken;
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
	struct standing s;
	bool again;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	s = memory_standing(m, c, now, a);
	if (c->form == FORM_SHARED)
		return share_extend(m, c, &s, a);
	if (!s.there && (!c->create || c->exact || call_is_late(c, a)))
		return answer_code(a, 'M', m->fence, -2);
	if (s.there && (s.shared || !s.key->value_n || !call_names(c, s.bare)))
		return answer_in_the_way(m, &s, a);
	if (s.broken && !c->exact)
		return answer_code(a, 'X', m->fence, -2);
	left_ms = s.there ? memory_pttl(m, s.key, a->server_us / 1000) : -1;
	again = stands_as(&s, c->new_value) && !s.broken;
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

/* release.lua; ignores the marker, and tells no fence */
static void call_release(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	struct standing s = memory_standing(m, c, now, a);

	if (s.shared && c->form != FORM_ALONE) /* else the script looks for none */
		return share_release(m, c, &s, a);
	if (!s.there || !s.key->value_n || s.shared || !call_names(c, s.bare))
		return answer_code(a, 'N', -1, -2);
	keyspace_drop(&m->keys, s.key);
	answer_code(a, 'R', -1, -2);
}

/* look.lua */
static void call_look(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	struct standing s;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	s = memory_standing(m, c, now, a);
	if (s.there)
		return answer_occupied(m, &s, a);
	answer_code(a, 'M', m->fence, -2);
}

/* mark.lua */
static void call_mark(struct memory *m, const struct call *c, struct answer *a)
{
	bool same = span_equal(memory_marker(m), c->marker);
	bool late = c->not_after_ms > 0 && a->server_us / 1000 > c->not_after_ms;
	int64_t floor = a->server_us + m->skew_us;

	if (same && !late) {
		if (span_starts(c->new_marker, SPAN("j")))
			memory_set_fence(m, c->fence > floor ? c->fence : floor);
		buf_clear(&m->marker);
		buf_append(&m->marker, c->new_marker.p, c->new_marker.n);
	}
	answer_code(a, !same ? 'X' : late ? 'L' : 'J', -1, -2);
	a->found = memory_marker(m);
}

static bool keyspace_loses(const struct keyspace *s)
{
	return s->file && keyfile_lost(s->file);
}

static void probe_files(struct memory *m)
{
	int error = jobs_error(&m->home->jobs);
	bool loses = m->file_error || keyspace_loses(&m->keys);

	m->refusal[0] = '\0';
	if (error)
		snprintf(m->refusal, sizeof(m->refusal), "DEFER its jobs cannot be written: %s%s", jobs_trouble(error),
		         loses ? "; nor can new names" : "");
	else if (loses)
		snprintf(m->refusal, sizeof(m->refusal), " new names find no room in its file: if the daemon is killed, the next refuses all for max_lease");
	m->probe.defect = error ? DEFECT_JOBS : loses ? DEFECT_FILES : DEFECT_NONE;
	m->probe.lesser = m->probe.defect != DEFECT_NONE;
	m->probe.refusal = span_of(m->refusal);
}

/* probe.lua */
static void call_probe(struct memory *m, struct answer *a)
{
	m->probe.marker = memory_marker(m);
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
		memory_break(m, c, now, &a);
		break;
	case CALL_TABLE:
		table_call(&m->table, memory_marker(m), c, &a);
		break;
	case CALL_HOME:
		home_call(m->home, memory_marker(m), m->epoch_us, c, now, &a);
		break;
	case CALL_TELL: /* nobody listens */
		answer_code(&a, span_equal(memory_marker(m), c->marker) ? 'T' : 'Q', -1, -2);
		a.found = a.code == 'T' ? SPAN("0") : memory_marker(m);
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
