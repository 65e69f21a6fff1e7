/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory store during a call: the key of the call, and the answers that describe that key. */
#ifndef STORE_MEMORY_KEY_H
#define STORE_MEMORY_KEY_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"
#include "daemon/store/home.h"
#include "daemon/store/keyspace.h"

#define PX_MAX (INT64_C(1) << 53) /* a larger Lua number is no longer an integer */
#define SHOWN_MAX 160

/* What a store shows to others of a value that is not theirs: */
/* '^([^:]+:[^:]+):%x+$', at most 128 bytes. Of 32 hex digits it also shows the first 12, after a colon. "" for a value that no redlockd wrote. */
struct span shown_public(struct span value);
/* The same; "#<length>:<first bytes>", in `room`, for a value that no redlockd wrote. */
struct span shown_what(struct span value, char room[SHOWN_MAX]);

/* A key that readers hold together: lua/shares.lua and lua/sharing.lua in C. This part reads and writes texts, and does not know keys. */
#define SHARES_MOST 256

struct share_end {
	int64_t ends_ms;
	struct span value; /* in the text that was read, or what was put */
};

struct share_list {
	unsigned count;
	struct share_end share[SHARES_MOST + 1];
};

/* Reads the shares in the text that are not over. False: the text has no shares. */
bool share_list_read(struct share_list *s, struct span text, int64_t now_ms);
/* The share that ends last. There must be one. */
const struct share_end *share_list_last(const struct share_list *s);
struct share_end *share_list_of(struct share_list *s, struct span value); /* NULL: it has none */
/* A share belongs to a reader, or is the mark of a semaphore, whose value contains the limit. Whether the other shares are of the same kind as this value. */
bool share_list_suits(const struct share_list *s, struct span value);
/* Takes out the shares of the call's values. Returns when the last of them ends, -1: there was none; *ret_again: its new value was among them. */
int64_t share_list_take(struct share_list *s, const struct call *c, bool *ret_again);
void share_list_put(struct share_list *s, struct span value, int64_t ends_ms); /* at the end */
/* Appends the text of the key. Returns its TTL. */
int64_t share_list_write(const struct share_list *s, struct buf *out, int64_t now_ms);

/* Who waits for whom: daemon/redis/lua/table.lua in C. */
struct table_entry;

struct table {
	struct table_entry *item; /* sorted by daemon */
	size_t count, cap;
	struct buf shown; /* the last answer */
};

void table_release(struct table *t);
/* A call to a store with this marker. The caller has already set the time of the answer. The answer is valid until the next call. */
void table_call(struct table *t, struct span marker, const struct call *c, struct answer *a);

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
