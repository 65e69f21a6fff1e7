/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts in C: the same checks in the same order. Each operation names its script, and must change with it.
 * Redis counts in milliseconds: a key is live while the server's clock, cut to milliseconds, is not beyond its expiry.
 * It must never read a clock, allocate under a steady load, or fail.
 */
#include "daemon/store/memory.h"

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/store/keyspace.h"
#include "daemon/store/shown.h"
#include "daemon/store/table.h"

#include <stdlib.h>

#define PX_MAX (INT64_C(1) << 53) /* beyond, a Lua number is no longer an integer */

struct memory {
	struct keyspace keys;
	int64_t epoch_us, skew_us, tolerance_us;
	int64_t fence;
	struct buf marker;
	struct probe probe;
	char *run_id;
	char shown[SHOWN_MAX]; /* of the last BREAK */
	struct table table;
};

struct memory *memory_new(const struct memory_conf *conf)
{
	struct memory *m = mem_alloc(sizeof(*m));

	keyspace_init(&m->keys, conf->seed);
	buf_init(&m->marker);
	m->epoch_us = conf->epoch_us;
	m->skew_us = conf->skew_us;
	m->tolerance_us = conf->tolerance_us;
	m->run_id = mem_copy(conf->run_id, strlen(conf->run_id));
	m->probe.run_id = m->probe.replid = span_of(m->run_id);
	m->probe.version = SPAN(REDLOCKD_VERSION);
	m->probe.role = SPAN("master");
	m->probe.policy = SPAN("noeviction");
	m->probe.own_data = true;
	return m;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	keyspace_release(&m->keys);
	buf_release(&m->marker);
	table_release(&m->table);
	free(m->run_id);
	free(m);
}

size_t memory_count(const struct memory *m)
{
	return m->keys.names.count;
}

int64_t memory_clock(const struct memory *m, struct instant now)
{
	return now.us + m->epoch_us;
}

struct span memory_marker(const struct memory *m)
{
	return (struct span){buf_begin(&m->marker), buf_length(&m->marker)};
}

int64_t memory_fence(const struct memory *m)
{
	return m->fence;
}

void memory_set_fence(struct memory *m, int64_t fence)
{
	if (fence > m->fence)
		m->fence = fence;
}

/* A key that expires at when_ms exists during that millisecond, and not in the next. */
static struct instant until_of(const struct memory *m, int64_t when_ms)
{
	return (struct instant){(when_ms + 1) * 1000 - m->epoch_us};
}

/* The same for any moment, rounded up to a millisecond of the server's clock. */
static struct instant until_round(const struct memory *m, struct instant until)
{
	int64_t server;

	if (until.us == INSTANT_NEVER.us || __builtin_add_overflow(until.us, m->epoch_us, &server) || server > INT64_MAX - 1000)
		return INSTANT_NEVER;
	return until_of(m, (server + 999) / 1000 - 1);
}

static int64_t memory_pttl(const struct memory *m, const struct key *key, int64_t now_ms)
{
	if (key->until.us == INSTANT_NEVER.us)
		return -1;
	return (key->until.us + m->epoch_us) / 1000 - 1 - now_ms;
}

void memory_put(struct memory *m, struct span name, struct span value, struct instant until)
{
	keyspace_set(&m->keys, keyspace_find(&m->keys, name), name, value, until_round(m, until));
}

void memory_put_foreign(struct memory *m, struct span name, struct instant until)
{
	keyspace_set(&m->keys, keyspace_find(&m->keys, name), name, (struct span){0}, until_round(m, until))->foreign = true;
}

void memory_remove(struct memory *m, struct span name)
{
	struct key *key = keyspace_find(&m->keys, name);

	if (key)
		keyspace_drop(&m->keys, key);
}

bool memory_get(struct memory *m, struct span name, struct instant now, struct span *ret_value, struct instant *ret_until)
{
	const struct key *key = keyspace_find(&m->keys, name);

	if (!key || !key_live(key, now))
		return false;
	*ret_value = key_value(key);
	*ret_until = key->until;
	return true;
}

void memory_each(struct memory *m, struct instant now,
		 void (*visit)(void *context, struct span name, struct span value, struct instant until), void *context)
{
	size_t n, i;
	struct key **sorted = keyspace_sorted(&m->keys, now, &n);

	for (i = 0; i < n; i++)
		visit(context, key_name(sorted[i]), key_value(sorted[i]), sorted[i]->until);
	free(sorted);
}

/* The value without the '!' that break.lua puts in front. */
static struct span key_unbroken(const struct key *key)
{
	struct span value = key_value(key);

	return value.n > 0 && value.p[0] == '!' ? (struct span){value.p + 1, value.n - 1} : value;
}

static bool key_is_broken(const struct key *key)
{
	return key_unbroken(key).n < key->value_n;
}

/* A key that was kept from an earlier run without its value matches no value. */
static bool key_is(const struct key *key, struct span value)
{
	return key->value_n && span_equal(key_unbroken(key), value);
}

/* Whether the key has one of the values, which are separated by blanks. */
static bool key_is_among(const struct key *key, struct span values)
{
	struct span value;

	while (span_word(&values, &value))
		if (key_is(key, value))
			return true;
	return false;
}

static void answer_code(struct answer *a, char code, int64_t fence, int64_t pttl_ms)
{
	a->class = ANSWER_EXECUTED;
	a->code = code;
	a->fence = fence;
	a->pttl_ms = pttl_ms < PTTL_MOST_MS ? pttl_ms : PTTL_MOST_MS;
}

static void answer_unjoined(const struct memory *m, struct answer *a)
{
	answer_code(a, 'Q', m->fence, -2);
	a->found = memory_marker(m);
}

static void answer_occupied(const struct memory *m, const struct key *key, struct answer *a)
{
	answer_code(a, key->foreign ? 'K' : 'B', m->fence, memory_pttl(m, key, a->server_us / 1000));
	if (!key->foreign)
		a->found = shown_public(key_value(key));
}

/* The SET at the end of a grant or a renewal. As in the scripts, an impossible TTL is an error after the fence was raised. */
static bool answer_set(struct memory *m, struct key *key, const struct call *c, struct span value, int64_t px_ms, struct answer *a)
{
	if (px_ms <= 0 || px_ms > PX_MAX) {
		a->class = ANSWER_UNKNOWN;
		a->text = SPAN("ERR invalid expire time in 'set' command");
		return false;
	}
	keyspace_set(&m->keys, key, c->name, value, until_of(m, a->server_us / 1000 + px_ms));
	return true;
}

/* No fence may exceed this. */
static int64_t memory_limit(const struct memory *m, const struct answer *a)
{
	return a->server_us + m->skew_us + m->tolerance_us;
}

/* acquire.lua */
static void call_acquire(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	int64_t limit = memory_limit(m, a), base = m->fence + 1, px_ms = c->px_ms, left_ms;
	struct key *key;

	if (!span_equal(memory_marker(m), c->marker))
		return answer_unjoined(m, a);
	if (c->not_after_ms > 0 && a->server_us / 1000 > c->not_after_ms)
		return answer_code(a, 'L', m->fence, -2);
	key = keyspace_get(&m->keys, c->name, now);
	if (key && (!key_is(key, c->value) || key_is_broken(key)))
		return answer_occupied(m, key, a);
	left_ms = key ? memory_pttl(m, key, a->server_us / 1000) : -1;
	if (left_ms > px_ms)
		px_ms = left_ms;
	if (c->fence > base && c->fence <= limit)
		base = c->fence;
	if (c->range > 0 && base + c->range > limit)
		return answer_code(a, 'F', m->fence, -2);
	m->fence = base + c->range;
	if (answer_set(m, key, c, c->value, px_ms, a))
		answer_code(a, 'G', base, px_ms);
}

/* extend.lua */
static void call_extend(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	bool late = c->not_after_ms > 0 && a->server_us / 1000 > c->not_after_ms;
	int64_t px_ms = c->px_ms, left_ms;
	struct key *key;
	bool again;

	if (!span_equal(memory_marker(m), c->marker))
		return answer_unjoined(m, a);
	key = keyspace_get(&m->keys, c->name, now);
	if (!key && (!c->create || c->exact || late))
		return answer_code(a, 'M', m->fence, -2);
	if (key && !key_is(key, c->value) && !key_is(key, c->new_value) && !key_is_among(key, c->prior))
		return answer_occupied(m, key, a);
	if (key && key_is_broken(key) && !c->exact)
		return answer_code(a, 'X', m->fence, -2);
	left_ms = key ? memory_pttl(m, key, a->server_us / 1000) : -1;
	again = key && key_is(key, c->new_value) && !key_is_broken(key);
	if (!c->exact && left_ms > px_ms)
		px_ms = left_ms;
	else if (c->exact && (c->at_most || again) && left_ms >= 0 && left_ms < px_ms)
		px_ms = left_ms > 0 ? left_ms : 1;
	if (c->fence > m->fence) {
		if (c->fence > memory_limit(m, a) && !c->beyond)
			return answer_code(a, 'F', m->fence, -2);
		m->fence = c->fence;
	}
	if (answer_set(m, key, c, c->new_value, px_ms, a))
		answer_code(a, key ? 'E' : 'A', m->fence, px_ms);
}

/* release.lua; ignores the marker, and tells no fence */
static void call_release(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	struct key *key = keyspace_get(&m->keys, c->name, now);

	if (!key || (!key_is(key, c->value) && !key_is_among(key, c->prior)))
		return answer_code(a, 'N', -1, -2);
	keyspace_drop(&m->keys, key);
	answer_code(a, 'R', -1, -2);
}

/* look.lua */
static void call_look(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	const struct key *key;

	if (!span_equal(memory_marker(m), c->marker))
		return answer_unjoined(m, a);
	key = keyspace_get(&m->keys, c->name, now);
	if (key)
		return answer_occupied(m, key, a);
	answer_code(a, 'M', m->fence, -2);
}

/* break.lua. A key whose value is not known is one of the previous run: nobody can renew it, so it is as good as broken. */
static void call_break(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	char value[VALUE_MAX + 1] = "!";
	struct key *key;
	struct span what;
	int64_t pttl_ms;

	if (!span_equal(memory_marker(m), c->marker))
		return answer_unjoined(m, a);
	key = keyspace_get(&m->keys, c->name, now);
	if (!key)
		return answer_code(a, 'M', m->fence, -2);
	if (key->foreign)
		return answer_occupied(m, key, a);
	pttl_ms = memory_pttl(m, key, a->server_us / 1000);
	what = shown_what(key_unbroken(key), m->shown);
	if (!span_equal(what, c->value)) {
		answer_code(a, 'B', m->fence, pttl_ms);
		a->found = what;
		return;
	}
	if (what.p[0] == '#' && key->value_n) {
		keyspace_drop(&m->keys, key);
		return answer_code(a, 'R', m->fence, -2);
	}
	if (key->value_n && !key_is_broken(key)) {
		memcpy(value + 1, key_value(key).p, key->value_n);
		keyspace_set(&m->keys, key, c->name, (struct span){value, key->value_n + 1U},
			     pttl_ms != 0 ? key->until : until_of(m, a->server_us / 1000 + 1));
	}
	answer_code(a, 'X', m->fence, pttl_ms);
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

/* probe.lua */
static void call_probe(struct memory *m, struct answer *a)
{
	m->probe.marker = memory_marker(m);
	answer_code(a, 'P', m->fence, -2);
	a->probe = &m->probe;
}

void memory_call(struct memory *m, const struct call *c, struct instant now, struct answer *ret_answer)
{
	struct answer a = {
		.call = c->id,
		.node = c->node,
		.server_us = memory_clock(m, now),
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
		table_call(&m->table, memory_marker(m), c, &a);
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
