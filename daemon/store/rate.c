/* SPDX-License-Identifier: BSD-2-Clause */
/* See rate.h. rate.lua explains what is kept and why. */
#include "daemon/store/rate.h"

#include "daemon/base/netstring.h"
#include "daemon/store/ledger.h"

#include <inttypes.h>
#include <stdlib.h>

#define PAIRS       1016
#define WRAP        INT64_C(1000000000000000)
#define RATE        256 /* bytes, as the ledger counts: see rate.lua … */
#define BLOCK       128
#define BLOCK_PAIRS 4
#define SWEEP       32

/* The first pair is the head: the longest window, and the sum that was consumed before the first real pair. */
struct pair {
	int64_t at, sum;
};

/* A value is the pairs, the peer that began it, and the length of that peer in a byte. */
struct work {
	struct pair *pair; /* pair[0] is the head */
	size_t n;          /* pairs after it */
	char peer[PEER_MAX];
	size_t peer_n;
};

void rates_init(struct rates *r, const uint64_t seed[2], struct ledger *ledger)
{
	r->ledger = ledger;
	keyspace_init(&r->keys, seed, NULL);
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

static struct span value_peer(struct span value)
{
	size_t n = value.n > 0 ? (unsigned char)value.p[value.n - 1] : 0;

	return n < value.n ? (struct span){value.p + value.n - 1 - n, n} : (struct span){0};
}

/* Of a valid value. */
static size_t value_pairs(struct span value)
{
	return value.n > 0 ? (value.n - 1 - value_peer(value).n) / sizeof(struct pair) - 1 : 0;
}

static int64_t blocks_bytes(size_t pairs)
{
	return (int64_t)(pairs + BLOCK_PAIRS) / BLOCK_PAIRS * BLOCK;
}

static int64_t key_bytes(struct span name, struct span peer)
{
	return (int64_t)(RATE + 8 * name.n + 2 * peer.n);
}

static int64_t key_charged(const struct key *key)
{
	struct span peer = value_peer(key_value(key));

	return key_bytes(key_name(key), peer) + blocks_bytes(value_pairs(key_value(key)));
}

static void rate_forget(struct rates *r, struct key *key)
{
	ledger_charge(r->ledger, value_peer(key_value(key)), -key_charged(key));
	keyspace_drop(&r->keys, key);
}

void rates_sweep(struct rates *r, struct instant now)
{
	struct key *key;

	for (unsigned i = 0; i < SWEEP && (key = keyspace_over(&r->keys, now)); i++)
		rate_forget(r, key);
}

/* NULL: there is none. */
static struct key *rate_find(struct rates *r, struct span name, struct instant now)
{
	struct key *key;

	rates_sweep(r, now);
	key = keyspace_find(&r->keys, name);
	if (!key || key_live(key, now))
		return key;
	rate_forget(r, key);
	return keyspace_find(&r->keys, name);
}

/* Copies the value of the key, with room for one more pair. */
static void work_begin(struct rates *r, const struct key *key, struct span peer, struct work *w)
{
	static const struct pair none;
	struct span value = key ? key_value(key) : (struct span){0}, pairs = {(const char *)&none, sizeof(none)};

	if (key) {
		peer = value_peer(value);
		pairs = (struct span){value.p, value.n - 1 - peer.n};
	}
	buf_clear(&r->work);
	w->pair = (struct pair *)(void *)buf_reserve(&r->work, pairs.n + sizeof(struct pair) + PEER_MAX + 1);
	memcpy(w->pair, pairs.p, pairs.n);
	w->n = pairs.n / sizeof(struct pair) - 1;
	w->peer_n = peer.n < PEER_MAX ? peer.n : PEER_MAX - 1;
	memcpy(w->peer, peer.n > 0 ? peer.p : "", w->peer_n);
}

/* The first pair, from `low` on, at this time or later; n + 1: none. */
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

/* If the clock was set back, returns true, and later consumption counts as of now. Then drops the pairs that have left all windows. */
static bool work_advance(struct work *w, int64_t now_us)
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

static void work_thin(struct work *w)
{
	for (size_t i = w->n % 2 == 0 ? 2 : 1, to = 1; i <= w->n; i += 2, to++)
		w->pair[to] = w->pair[i];
	w->n = (w->n + 1) / 2;
}

/* One pair per ms. A larger limit has one for each 64th of the window, which counts as of its last consumption. */
static void work_consume(struct work *w, int64_t now_us, int64_t limit, int64_t per, int64_t cost)
{
	int64_t slice = limit > 1000 && per > 64000 ? per / 64 : 1000, total = w->pair[w->n].sum;
	bool same = w->n > 0 && w->pair[w->n].at / slice == now_us / slice;

	if (!same)
		w->n++;
	w->pair[w->n] = (struct pair){now_us, wrapped(total + cost)};
	if (w->n > PAIRS) /* windows of several lengths */
		work_thin(w);
}

static void text_set(struct buf *result, int64_t left, int64_t when_us)
{
	buf_clear(result);
	buf_printf(result, "%" PRId64 " %" PRId64, left, (when_us + 999) / 1000);
}

/* The pair at which enough has left the window for this cost. */
static size_t work_enough(const struct work *w, size_t from, int64_t limit, int64_t cost)
{
	size_t i = from;

	while (i < w->n && wrapped(w->pair[w->n].sum - w->pair[i].sum) + cost > limit)
		i++;
	return i;
}

/* The code of the answer, if there is room. */
static char work_judge(struct work *w, int64_t now_us, const int64_t argument[3], struct buf *result)
{
	int64_t limit = argument[0], per = argument[1], cost = argument[2], total = w->pair[w->n].sum, used;
	size_t from = first_at(w, 1, now_us - per + 1);

	used = wrapped(total - w->pair[from - 1].sum);
	if (used + cost > limit) {
		text_set(result, limit > used ? limit - used : 0, w->pair[work_enough(w, from, limit, cost)].at + per - now_us);
		return 'T';
	}
	if (wrapped(total - w->pair[0].sum) + cost >= WRAP) {
		text_set(result, 0, w->pair[1].at + w->pair[0].at - now_us);
		return 'T';
	}
	if (cost > 0)
		work_consume(w, now_us, limit, per, cost);
	text_set(result, limit - used - cost, used + cost > 0 ? w->pair[w->n].at + per - now_us : 0);
	return 'Y';
}

/* The key ends shortly after its last pair has left the longest window. */
static struct instant pairs_until(const struct pair *pair, size_t n, int64_t epoch_us)
{
	return (struct instant){(pair[n].at / 1000 + pair[0].at / 1000 + 3) * 1000 - epoch_us};
}

/* 0, or '*' or 'p': the ledger refuses the bytes. If there is no room for more pairs, it drops half of them. */
static char work_keep(struct rates *r, struct key *key, struct span name, struct work *w, const int64_t most[2], int64_t epoch_us)
{
	struct span peer = {w->peer, w->peer_n};
	int64_t had = key ? key_charged(key) : 0, more;
	struct instant until;
	char much, *end;

	for (;;) {
		more = key_bytes(name, peer) + blocks_bytes(w->n) - had;
		much = more > 0 ? ledger_too_much(r->ledger, peer, more, most[0], most[1]) : 0;
		if (!much || w->n <= 1)
			break;
		work_thin(w);
	}
	if (much)
		return much;
	ledger_charge(r->ledger, peer, more);
	until = pairs_until(w->pair, w->n, epoch_us);
	end = (char *)&w->pair[w->n + 1];
	memcpy(end, w->peer, w->peer_n);
	end[w->peer_n] = (char)w->peer_n;
	keyspace_set(&r->keys, key, name, (struct span){(const char *)w->pair, (size_t)(end + w->peer_n + 1 - (char *)w->pair)}, until);
	return 0;
}

bool rate_call(struct rates *r, int64_t epoch_us, const struct call *c, struct span arguments, struct instant now, struct buf *result, struct answer *a)
{
	int64_t argument[3], most[2], now_us = a->server_us;
	struct span peer;
	struct key *key;
	struct work w;
	bool set_back;
	char much = 0;

	for (unsigned i = 0; i < 3; i++)
		if (!netstring_next_int(&arguments, &argument[i]))
			return false;
	if (!netstring_next(&arguments, &peer) || !netstring_next_int(&arguments, &most[0]) || !netstring_next_int(&arguments, &most[1]))
		return false;
	buf_clear(result);
	key = rate_find(r, c->name, now);
	work_begin(r, key, peer, &w);
	set_back = work_advance(&w, now_us);
	if (w.pair[0].at < argument[1])
		w.pair[0].at = argument[1];
	a->code = work_judge(&w, now_us, argument, result);
	if (set_back || (a->code == 'Y' && argument[2] > 0))
		much = work_keep(r, key, c->name, &w, most, epoch_us);
	if (!much)
		return true;
	a->code = 'B';
	buf_clear(result);
	buf_append(result, &much, 1);
	return true;
}
