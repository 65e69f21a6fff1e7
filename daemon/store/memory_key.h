/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory store during a call: the key of the call, and the answers that describe that key. */
#ifndef STORE_MEMORY_KEY_H
#define STORE_MEMORY_KEY_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"
#include "daemon/store/home.h"
#include "daemon/store/keyspace.h"
#include "daemon/store/share_list.h"
#include "daemon/store/table.h"

#define PX_MAX (INT64_C(1) << 53) /* a larger Lua number is no longer an integer */
#define SHOWN_MAX 160

/* What a store shows to others of a value that is not theirs: */
/* '^([^:]+:[^:]+):%x+$', at most 128 bytes. Of 32 hex digits it also shows the first 12, after a colon. "" for a value that no redlockd wrote. */
struct span shown_public(struct span value);
/* The same; "#<length>:<first bytes>", in `room`, for a value that no redlockd wrote. */
struct span shown_what(struct span value, char room[SHOWN_MAX]);

struct memory {
	struct keyspace keys;
	int64_t epoch_us, skew_us, tolerance_us;
	int64_t fence;
	struct buf marker;
	struct probe probe;
	char refusal[192]; /* of the last probe */
	int unmarked;      /* see memory_unmarked() */
	char *run_id;
	char shown[SHOWN_MAX]; /* of the last BREAK */
	struct share_list shares;  /* of the key of the last call */
	struct buf text;       /* the text of the shares that the call leaves */
	struct table table;
	struct home *home;
};

/* The present state of a call's key: standing() of lua/shares.lua. */
struct key_view {
	struct key *key;  /* to be set; all of its shares may be over. NULL: there is none */
	bool there;       /* the name is taken */
	bool shared;      /* by shares: memory.shares */
	bool broken;
	struct span bare; /* without the '!' of a broken one */
};

/* For a value that begins like a broken one, or like shares. */
void key_view_read(struct memory *m, struct key_view *s, int64_t now_ms);

static inline struct key_view memory_key_view(struct memory *m, const struct call *c, struct instant now, const struct answer *a)
{
	struct key_view s = {.key = keyspace_get(&m->keys, c->name, now)};

	s.there = s.key != NULL;
	if (!s.there || !s.key->value_n)
		return s;
	s.bare = key_value(s.key);
	if (s.bare.p[0] == '!' || s.bare.p[0] == 'R')
		key_view_read(m, &s, a->server_us / 1000);
	return s;
}

void answer_unjoined(const struct memory *m, const struct call *c, struct answer *a);
void answer_occupied(struct memory *m, const struct key_view *s, struct answer *a);
void answer_in_the_way(struct memory *m, const struct key_view *s, struct answer *a); /* the same for a renewal */

/* memory_clock, memory_marker and memory_set_fence of memory.h, inline because each call uses them. */
static inline int64_t clock_of(const struct memory *m, struct instant now)
{
	return now.us + m->epoch_us;
}

static inline struct span marker_of(const struct memory *m)
{
	return (struct span){buf_begin(&m->marker), buf_length(&m->marker)};
}

static inline void fence_lift(struct memory *m, int64_t fence)
{
	if (fence > m->fence)
		m->fence = fence;
}

/* When a key ends that expires at that moment of the server's clock: it exists during that millisecond, and not in the next. */
static inline struct instant memory_until(const struct memory *m, int64_t when_ms)
{
	return (struct instant){(when_ms + 1) * 1000 - m->epoch_us};
}

static inline int64_t memory_pttl(const struct memory *m, const struct key *key, int64_t now_ms)
{
	if (key->until.us == INSTANT_NEVER.us)
		return -1;
	return (key->until.us + m->epoch_us) / 1000 - 1 - now_ms;
}

/* Whether the marker is the expected one, and the caller has seen no larger fence here. */
static inline bool memory_is_joined(const struct memory *m, const struct call *c)
{
	return m->fence >= c->seen && span_equal(marker_of(m), c->marker);
}

static inline void answer_code(struct answer *a, char code, int64_t fence, int64_t pttl_ms)
{
	a->class = ANSWER_EXECUTED;
	a->code = code;
	a->fence = fence;
	a->pttl_ms = pttl_ms < PTTL_MOST_MS ? pttl_ms : PTTL_MOST_MS;
}

/* The SET at the end of a grant or a renewal. As in the scripts, an impossible TTL is an error after the fence was raised. */
static inline bool answer_set(struct memory *m, struct key *key, const struct call *c, struct span value, int64_t px_ms, struct answer *a)
{
	if (px_ms <= 0 || px_ms > PX_MAX) {
		a->class = ANSWER_UNKNOWN;
		a->text = SPAN("ERR invalid expire time in 'set' command");
		return false;
	}
	keyspace_set(&m->keys, key, c->name, value, memory_until(m, a->server_us / 1000 + px_ms));
	return true;
}

/* No fence may exceed this. */
static inline int64_t memory_limit(const struct memory *m, const struct answer *a)
{
	return a->server_us + m->skew_us + m->tolerance_us;
}

static inline bool call_is_late(const struct call *c, const struct answer *a)
{
	return c->not_after_ms > 0 && a->server_us / 1000 > c->not_after_ms;
}

/* Whether the value is one of those of the call. */
static inline bool call_names(const struct call *c, struct span value)
{
	return span_equal(value, c->value) || (c->kind == CALL_EXTEND && span_equal(value, c->new_value));
}

#endif
