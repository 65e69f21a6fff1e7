/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of a simulated server: strings, hashes and sorted sets. A key may expire at a moment in milliseconds of the server's wall clock: it is over when
 * that clock, cut to milliseconds, is beyond the moment, and it is removed when it is next accessed. A watcher is called for every change.
 */
#ifndef SIM_DATA_H
#define SIM_DATA_H

#include "daemon/base/map.h"
#include "tests/sim/redis/items.h"

#define DATUM_FOREVER INT64_C(-1)

enum datum_type { DATUM_STRING, DATUM_HASH, DATUM_ZSET };

struct datum {
	struct map_node node;
	struct span key; /* owned, like text */
	enum datum_type type;
	int64_t expires_ms; /* DATUM_FOREVER: never */
	struct span text;   /* STRING; "" otherwise */
	struct items items; /* HASH, ZSET */
};

/* `before` and `after` are "" for no key, or one of another type. The callback may not touch the key. */
typedef void data_changed(void *context, struct span key, struct span before, struct span after);

struct data {
	struct map keys;
	uint64_t changes; /* how often a key came or went: until the next time, what was found stays where it is */
	data_changed *changed; /* NULL: no watcher */
	void *context;
};

void data_init(struct data *d);
void data_release(struct data *d); /* without a callback */
void data_clear(struct data *d);
void data_copy(struct data *to, const struct data *from); /* replaces all of `to` */

struct datum *data_find(struct data *d, struct span key, int64_t now_ms); /* NULL: there is none, or it is over */
bool datum_live(const struct datum *datum, int64_t now_ms);
const struct datum *data_peek(const struct data *d, struct span key); /* finds a key that is over as well */

/* datum: the result of data_find for the key, or NULL. The TTL stays; a new key has none. */
struct datum *data_set_text(struct data *d, struct datum *datum, struct span key, struct span text);
struct datum *data_add_items(struct data *d, struct span key, enum datum_type type); /* the key must not exist */
void data_remove(struct data *d, struct datum *datum);

/* Sorted by key. The caller frees the array. */
struct datum **data_sorted(const struct data *d, size_t *ret_count);

#endif
