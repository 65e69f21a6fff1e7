/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of a simulated server: strings, hashes and sorted sets, each with or without the moment at which it expires, in milliseconds of the server's
 * wall clock. A key is over when that clock, cut to milliseconds, is beyond its moment; it goes when it is met. Whoever watches is told of every change.
 */
#ifndef SIM_DATA_H
#define SIM_DATA_H

#include "daemon/base/map.h"
#include "tests/sim/redis/items.h"

#define DATUM_FOREVER INT64_C(-1)

enum datum_type { DATUM_STRING, DATUM_HASH, DATUM_ZSET };

struct datum {
	struct map_node node;
	struct span key; /* owned, as is the text */
	enum datum_type type;
	int64_t expires_ms; /* DATUM_FOREVER: never */
	struct span text;   /* STRING; "" otherwise */
	struct items items; /* HASH, ZSET */
};

/* before and after are "" where there is no key, or one of another type. The key may not be touched meanwhile. */
typedef void data_changed(void *context, struct span key, struct span before, struct span after);

struct data {
	struct map keys;
	data_changed *changed; /* NULL: nobody watches */
	void *context;
};

void data_init(struct data *d);
void data_release(struct data *d); /* tells nobody */
void data_clear(struct data *d);
void data_copy(struct data *to, const struct data *from); /* replaces what is there */

struct datum *data_find(struct data *d, struct span key, int64_t now_ms); /* NULL: not there, or no longer */
bool datum_live(const struct datum *datum, int64_t now_ms);
const struct datum *data_peek(const struct data *d, struct span key); /* also one that is over */

/* datum is what data_find gave for the key, or NULL. The TTL stays as it was; a new key has none. */
struct datum *data_set_text(struct data *d, struct datum *datum, struct span key, struct span text);
struct datum *data_add_items(struct data *d, struct span key, enum datum_type type); /* there is none */
void data_remove(struct data *d, struct datum *datum);

/* In the order of the keys. The caller frees the array. */
struct datum **data_sorted(const struct data *d, size_t *ret_count);

#endif
