/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys with a deadline: the database of the memory store. A key is there before its deadline and not at or after it. Keys that are
 * over go when they are met, and a few at a time by keyspace_reclaim, so memory follows what is held. On the steady path nothing
 * is allocated: names and values lie in the key itself, in a few sizes that are used again.
 */
#ifndef STORE_KEYSPACE_H
#define STORE_KEYSPACE_H

#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "daemon/base/pool.h"
#include "proto/span.h"

#define KEY_CLASSES 3

struct key {
	struct map_node node;
	struct timer timer;   /* set at or before until: a renewal leaves it, and it is set anew when it fires */
	struct instant until; /* INSTANT_NEVER: no TTL */
	uint32_t name_n, value_n;
	uint32_t cap; /* of bytes */
	bool foreign; /* of another type: has no value */
	char bytes[]; /* the name, then the value */
};

struct keyspace {
	struct map names;
	struct heap deadlines;
	struct pool pool[KEY_CLASSES];
};

void keyspace_init(struct keyspace *s, const uint64_t seed[2]);
void keyspace_release(struct keyspace *s);

struct key *keyspace_find(const struct keyspace *s, struct span name);              /* also one that is over */
struct key *keyspace_get(struct keyspace *s, struct span name, struct instant now); /* drops one that is over */
/* Puts the value there; key is what keyspace_find or _get gave for the name, or NULL. It may move. */
struct key *keyspace_set(struct keyspace *s, struct key *key, struct span name, struct span value, struct instant until);
void keyspace_drop(struct keyspace *s, struct key *key);
/* Gives a bounded number of keys back that are over: more than one call can add. */
void keyspace_reclaim(struct keyspace *s, struct instant now);
/* The live keys in name order, in memory that the caller frees. */
struct key **keyspace_sorted(const struct keyspace *s, struct instant now, size_t *ret_count);

static inline struct span key_name(const struct key *key)
{
	return (struct span){key->bytes, key->name_n};
}

static inline struct span key_value(const struct key *key)
{
	return (struct span){key->bytes + key->name_n, key->value_n};
}

static inline bool key_live(const struct key *key, struct instant now)
{
	return instant_before(now, key->until);
}

#endif
