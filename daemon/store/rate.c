/* SPDX-License-Identifier: BSD-2-Clause */
/* See rate.h, and rate.lua for what is kept and why. */
#include "daemon/store/rate.h"

#include "daemon/base/netstring.h"

#include <inttypes.h>
#include <stdlib.h>

#define PAIRS     1024
#define WRAP      INT64_C(1000000000000000)
#define KEYS_MAX  100000             /* limits, and … */
#define LARGE_MAX (64 * 1024 * 1024) /* … bytes of those with many pairs: beyond, no further one is kept, and none gets room for more pairs */

/* The first is the head: the longest window, and what had been consumed before the first pair. */
struct pair {
	int64_t at, sum;
};

struct work {
	struct pair *pair; /* 0: the head */
	size_t n;          /* pairs behind it */
	size_t most;       /* so many are kept at most */
};

void rates_init(struct rates *r, const uint64_t seed[2], struct keyfile *file)
{
	keyspace_init(&r->keys, seed, file);
	buf_init(&r->work);
}

void rates_release(struct rates *r)
{
	keyspace_release(&r->keys);
	buf_release(&r->work);
}

static int64_t wrapped(int64_t n)
{
	return n < 0 ? n + WRAP : n % WRAP;
}

static size_t pairs_most(const struct rates *r, const struct key *key, size_t name_n)
{
	size_t room = key && key->cap > keyspace_small() ? key->cap : keyspace_small(), n = (room - name_n) / sizeof(struct pair) - 1;

	return r->keys.large < LARGE_MAX || n > PAIRS ? PAIRS : n;
}

/* Copies what stands there, with room for one pair more. */
static struct work work_begin(struct rates *r, const struct key *key, struct span name)
{
	static const struct pair none;
	struct span value = key ? key_value(key) : (struct span){(const char *)&none, sizeof(none)};
	struct work w;

	buf_clear(&r->work);
	w.pair = (struct pair *)(void *)buf_reserve(&r->work, value.n + sizeof(struct pair));
	memcpy(w.pair, value.p, value.n);
	w.n = value.n / sizeof(struct pair) - 1;
	w.most = pairs_most(r, key, name.n);
	return w;
}

/* The first pair, from `low` on, that is at `at` or later; n + 1: none. */
static size_t first_at(const struct work *w, size_t low, int64_t at)
{
	size_t high = w->n + 1;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (w->pair[middle].at >= at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The clock was set back: what lies ahead of it was consumed by now; true: that is so. Then what all windows have left behind goes. */
static bool work_settle(struct work *w, int64_t now_us)
{
	size_t ahead = first_at(w, 1, now_us + 1), live;

	bool set_back = ahead <= w->n;

	if (set_back) {
		w->pair[ahead] = (struct pair){now_us, w->pair[w->n].sum};
		w->n = ahead;
	}
	live = first_at(w, 1, now_us - w->pair[0].at + 1);
	w->pair[0].sum = w->pair[live - 1].sum;
	memmove(&w->pair[1], &w->pair[live], (w->n - live + 1) * sizeof(struct pair));
	w->n -= live - 1;
	return set_back;
}

/* One pair a ms; of a larger limit one for each 64th of the window, which counts as of its last consumption. */
static void work_consume(struct work *w, int64_t now_us, int64_t limit, int64_t per, int64_t cost)
{
	int64_t slice = limit > 1000 && per > 64000 ? per / 64 : 1000, total = w->pair[w->n].sum;
	bool same = w->n > 0 && w->pair[w->n].at / slice == now_us / slice;

	if (!same)
		w->n++;
	w->pair[w->n] = (struct pair){now_us, wrapped(total + cost)};
	if (w->n <= w->most)
		return;
	for (size_t i = w->n % 2 == 0 ? 2 : 1, to = 1; i <= w->n; i += 2, to++) /* windows of several lengths, or no room: half of the pairs go */
		w->pair[to] = w->pair[i];
	w->n = (w->n + 1) / 2;
}

static void said_set(struct buf *said, int64_t left, int64_t when_us)
{
	buf_clear(said);
	buf_printf(said, "%" PRId64 " %" PRId64, left, (when_us + 999) / 1000);
}

/* The pair from which on enough has left the window for this cost. */
static size_t work_enough(const struct work *w, size_t from, int64_t limit, int64_t cost)
{
	size_t i = from;

	while (i < w->n && wrapped(w->pair[w->n].sum - w->pair[i].sum) + cost > limit)
		i++;
	return i;
}

/* The code of the answer: Y, T, or F: no further limit is kept. */
static char work_judge(struct work *w, int64_t now_us, const int64_t argument[3], struct buf *said)
{
	int64_t limit = argument[0], per = argument[1], cost = argument[2], total = w->pair[w->n].sum, used;
	size_t from = first_at(w, 1, now_us - per + 1);

	used = wrapped(total - w->pair[from - 1].sum);
	if (used + cost > limit) {
		said_set(said, limit > used ? limit - used : 0, w->pair[work_enough(w, from, limit, cost)].at + per - now_us);
		return 'T';
	}
	if (wrapped(total - w->pair[0].sum) + cost >= WRAP) {
		said_set(said, 0, w->pair[1].at + w->pair[0].at - now_us);
		return 'T';
	}
	if (cost > 0)
		work_consume(w, now_us, limit, per, cost);
	said_set(said, limit - used - cost, used + cost > 0 ? w->pair[w->n].at + per - now_us : 0);
	return 'Y';
}

/* The key ends a little after its last pair has left the longest window. */
static struct instant pairs_until(const struct pair *pair, size_t n, int64_t epoch_us)
{
	return (struct instant){(pair[n].at / 1000 + pair[0].at / 1000 + 3) * 1000 - epoch_us};
}

/* Full, as far as is known. */
static void refuse_until(const struct key *key, int64_t epoch_us, int64_t now_us, struct buf *said, struct answer *a)
{
	a->code = 'T';
	said_set(said, 0, key->until.us + epoch_us - now_us);
}

bool rate_call(struct rates *r, int64_t epoch_us, const struct call *c, struct span arguments, struct instant now, struct buf *said, struct answer *a)
{
	int64_t argument[3], now_us = a->server_us;
	struct key *key;
	struct work w;
	bool set_back;

	for (unsigned i = 0; i < 3; i++)
		if (!netstring_next_int(&arguments, &argument[i]))
			return false;
	keyspace_reclaim(&r->keys, now);
	key = keyspace_get(&r->keys, c->name, now);
	buf_clear(said);
	a->code = 'F';
	if (!key && (r->keys.names.count >= KEYS_MAX || r->keys.large >= LARGE_MAX))
		return true;
	if (key && key->value_n == 0) {
		refuse_until(key, epoch_us, now_us, said, a);
		return true;
	}
	w = work_begin(r, key, c->name);
	set_back = work_settle(&w, now_us);
	if (w.pair[0].at < argument[1])
		w.pair[0].at = argument[1];
	a->code = work_judge(&w, now_us, argument, said);
	if (set_back || (a->code == 'Y' && argument[2] > 0))
		keyspace_set(&r->keys, key, c->name, (struct span){(const char *)w.pair, (w.n + 1) * sizeof(struct pair)},
			     pairs_until(w.pair, w.n, epoch_us));
	return true;
}

/* Copies the pairs, which may stand at any address. */
static bool work_read(struct rates *r, struct span value, struct work *ret)
{
	if (value.n % sizeof(struct pair) != 0 || value.n < 2 * sizeof(struct pair) || value.n > (PAIRS + 1) * sizeof(struct pair))
		return false;
	buf_clear(&r->work);
	ret->pair = (struct pair *)(void *)buf_reserve(&r->work, value.n);
	memcpy(ret->pair, value.p, value.n);
	ret->n = value.n / sizeof(struct pair) - 1;
	for (size_t i = 0; i <= ret->n; i++)
		if (ret->pair[i].at < 0 || ret->pair[i].sum < 0 || ret->pair[i].sum >= WRAP || (i > 1 && ret->pair[i].at < ret->pair[i - 1].at))
			return false;
	return ret->pair[0].at <= RATE_WINDOW_MAX && ret->pair[ret->n].at < INT64_MAX / 4;
}

bool rate_put(struct rates *r, int64_t epoch_us, struct span name, struct span value, struct instant until, struct instant now)
{
	struct key *key;
	struct work w;

	if (value.n > 0 && !work_read(r, value, &w))
		return false;
	if (value.n > 0)
		until = pairs_until(w.pair, w.n, epoch_us);
	until = instant_min(until, instant_add(now, RATE_WINDOW_MAX));
	key = keyspace_get(&r->keys, name, now);
	if (!instant_before(now, until) || (key && !instant_before(key->until, until)))
		return false;
	keyspace_set(&r->keys, key, name, value, until);
	return true;
}
