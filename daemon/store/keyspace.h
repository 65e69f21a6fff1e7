/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys with a deadline: the database of the memory store. A key exists before its deadline, not at or after it. An expired key is freed when keyspace_get finds
 * it, or by keyspace_reclaim. So memory follows the number of live keys. A steady load allocates nothing: a key contains its name and value, and comes from a
 * pool of one of a few sizes. Not thread-safe. With a keyfile the keys survive the process. A key that was being changed when the process ended keeps its name,
 * and the later of its two deadlines. A change is safe once the call has returned.
 */
#ifndef STORE_KEYSPACE_H
#define STORE_KEYSPACE_H

#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "daemon/base/pool.h"
#include "proto/span.h"

#include <sys/queue.h>

#define KEY_CLASSES 9

struct keyfile;

/* How much of a key that another run left is valid. */
enum key_state {
	KEY_NONE,     /* there is no key: nothing was written yet, or it was dropped */
	KEY_CHANGING, /* its value is partly old and partly new */
	KEY_WHOLE
};

struct key {
	struct map_node node;
	struct timer timer;   /* expires at or before `until`: a renewal does not move it, keyspace_reclaim does */
	struct instant until; /* INSTANT_NEVER: no TTL */
	uint32_t name_n, value_n;
	uint32_t cap; /* size of bytes */
	bool foreign : 1; /* a key of another type, without a value */
	bool apart : 1;   /* it is in no slab */
	uint8_t state; /* for the next run */
	char bytes[]; /* the name, then the value */
};

struct key_apart;

struct keyspace {
	struct map names;
	struct heap deadlines;
	struct pool pool[KEY_CLASSES];
	struct keyfile *file; /* NULL: the keys end with the process */
	TAILQ_HEAD(, key_apart) apart; /* keys that are not in the file, or too large for a slab */
	uint64_t looked_up; /* the hash of the name that keyspace_find last looked for */
};

void keyspace_init(struct keyspace *s, const uint64_t seed[2], struct keyfile *file);
void keyspace_release(struct keyspace *s); /* before the keyfile is freed */
uint32_t keyspace_layout(void); /* of the keys in a keyfile */
/* The contents of an object in a keyfile. An incomplete value is "". False: no key. */
bool keyspace_read(const void *object, size_t size, struct span *ret_name, struct span *ret_value, struct instant *ret_until);

struct key *keyspace_find(struct keyspace *s, struct span name);                    /* may be expired; NULL: none */
struct key *keyspace_get(struct keyspace *s, struct span name, struct instant now); /* drops an expired key; NULL: none */
/*
 * Sets the value of a key. key: the result of keyspace_find or keyspace_get for this name, with no other lookup in between. Returns the key, which may have
 * moved.
 */
struct key *keyspace_set(struct keyspace *s, struct key *key, struct span name, struct span value, struct instant until);
void keyspace_drop(struct keyspace *s, struct key *key);
/* An expired key; NULL: none was found within a bounded time. */
struct key *keyspace_over(struct keyspace *s, struct instant now);
/* Frees a bounded number of expired keys, more than one call can add. */
void keyspace_reclaim(struct keyspace *s, struct instant now);
/* Moves keys that found no room in the file into it, a bounded number of them. After the last one the file is complete again. Call it now and then. True: call
 * it again soon. */
bool keyspace_move_to_file(struct keyspace *s);
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
