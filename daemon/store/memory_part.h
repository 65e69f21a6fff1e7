/* SPDX-License-Identifier: BSD-2-Clause */
/* What memory.c and sharing.c have in common. */
#ifndef STORE_MEMORY_PART_H
#define STORE_MEMORY_PART_H

#include "daemon/base/buf.h"
#include "daemon/store/home.h"
#include "daemon/store/keyspace.h"
#include "daemon/store/memory.h"
#include "daemon/store/share_list.h"
#include "daemon/store/shown.h"
#include "daemon/store/table.h"

#define PX_MAX (INT64_C(1) << 53) /* beyond, a Lua number is no longer an integer */

struct memory {
	struct keyspace keys;
	int64_t epoch_us, skew_us, tolerance_us;
	int64_t fence;
	struct buf marker;
	struct probe probe;
	int file_error;
	char refusal[192]; /* of the last probe */
	char *run_id;
	char shown[SHOWN_MAX]; /* of the last BREAK */
	struct share_list shares;  /* of the key of the last call */
	struct buf text;       /* of those that it leaves */
	struct table table;
	struct home *home;
};

/* What stands at the key of a call: standing() of lua/shares.lua. */
struct standing {
	struct key *key;  /* to be set; it may hold shares that are all over. NULL: there is none */
	bool there;       /* something stands */
	bool shared;      /* shares stand: memory.shares */
	bool broken;
	struct span bare; /* without the '!' of a broken one */
};

/* The value begins like one that is broken, or like shares. */
void standing_read(struct memory *m, struct standing *s, int64_t now_ms);

static inline struct standing memory_standing(struct memory *m, const struct call *c, struct instant now, const struct answer *a)
{
	struct standing s = {.key = keyspace_get(&m->keys, c->name, now)};

	s.there = s.key != NULL;
	if (!s.there || !s.key->value_n)
		return s;
	s.bare = key_value(s.key);
	if (s.bare.p[0] == '!' || s.bare.p[0] == 'R')
		standing_read(m, &s, a->server_us / 1000);
	return s;
}

void answer_code(struct answer *a, char code, int64_t fence, int64_t pttl_ms);
/* Whether the marker is the one that the call expects, and no larger fence was seen here. */
bool memory_is_joined(const struct memory *m, const struct call *c);
void answer_unjoined(const struct memory *m, const struct call *c, struct answer *a);
void answer_occupied(struct memory *m, const struct standing *s, struct answer *a);
void answer_in_the_way(struct memory *m, const struct standing *s, struct answer *a); /* the same for a renewal */
int64_t memory_pttl(const struct memory *m, const struct key *key, int64_t now_ms);
struct instant until_of(const struct memory *m, int64_t when_ms); /* the end of a key that expires at that moment of the server's clock */
/* The SET at the end of a grant or a renewal. As in the scripts, an impossible TTL is an error after the fence was raised. */
bool answer_set(struct memory *m, struct key *key, const struct call *c, struct span value, int64_t px_ms, struct answer *a);

/* memory_clock, where each call asks for it. */
static inline int64_t clock_of(const struct memory *m, struct instant now)
{
	return now.us + m->epoch_us;
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

/* Whether it is one of the values of the call. */
static inline bool call_names(const struct call *c, struct span value)
{
	return span_equal(value, c->value) || (c->kind == CALL_EXTEND && span_equal(value, c->new_value));
}

/* breaking.c */
void memory_break(struct memory *m, const struct call *c, struct instant now, struct answer *a);

/* sharing.c: the key has its fence, and may be taken. */
void share_acquire(struct memory *m, const struct call *c, const struct standing *s, int64_t base, struct answer *a);
bool share_may_join(struct memory *m, const struct call *c, const struct standing *s); /* shares stand */
void share_extend(struct memory *m, const struct call *c, const struct standing *s, struct answer *a);
void share_release(struct memory *m, const struct call *c, const struct standing *s, struct answer *a); /* shares stand */

#endif
