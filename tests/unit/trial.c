/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens is chosen so that every rule of the scripts is met at its edges: the last microsecond, the exact limit, one beyond. */
#include "tests/unit/trial.h"

#define TEXT(s) ((struct span){s, sizeof(s) - 1})

static const struct span names[] = {
	TEXT("a"), TEXT("orders/42"), TEXT("two words"), TEXT("nul\0inside"), TEXT("\xff:\n"), TEXT("!meta"), {NULL, 512},
};
static const struct span values[] = {
	TEXT("d1:1:0af"),
	TEXT("d1:2:ff00"),
	TEXT("d2:1:ABCDEF0123456789abcdef0123456789"),
	{NULL, VALUE_MAX},
};
/* What other clients put there; some nearly look like ours. */
static const struct span foreign[] = {
	TEXT("x"),   TEXT("a:b"),       TEXT("a:b:"),          TEXT("a::ff"),    TEXT(":b:ff"),    TEXT("a:b:xyz"),
	TEXT("::"),  TEXT("a:b:f:f"),   TEXT("a:b:ff\n"),      TEXT("a\n:\n:0"), TEXT("\0:\0:00"), TEXT("a:b:f\0"),
	{NULL, 300}, {NULL, VALUE_MAX}, {NULL, VALUE_MAX + 1}, TEXT("d1:1:0af"),
};
static const struct span markers[] = {TEXT("j|one"), TEXT("q|two"), TEXT("j|three"), TEXT("")};

static char long_text[512];
static char long_value[VALUE_MAX + 1];

#define PICK(t, list) span_fill((list)[rng_below(&(t)->rng, sizeof(list) / sizeof((list)[0]))])

static struct span span_fill(struct span s)
{
	if (!s.p)
		s.p = s.n <= sizeof(long_value) ? long_value : long_text;
	return s;
}

struct span trial_name(size_t i)
{
	return i < sizeof(names) / sizeof(names[0]) ? span_fill(names[i]) : TEXT("");
}

size_t trial_key(struct span name, char *ret_key)
{
	memcpy(ret_key, PREFIX, sizeof(PREFIX) - 1);
	memcpy(ret_key + sizeof(PREFIX) - 1, name.p, name.n);
	return sizeof(PREFIX) - 1 + name.n;
}

bool trial_chance(struct trial *t, unsigned percent)
{
	return rng_below(&t->rng, 100) < percent;
}

int64_t trial_clock(const struct trial *t)
{
	return t->now.us + EPOCH_US;
}

static int64_t near(struct trial *t, int64_t n)
{
	return n - 1 + (int64_t)rng_below(&t->rng, 3);
}

void trial_begin(struct trial *t, struct oracle *redis, uint64_t seed)
{
	uint64_t key[2] = {seed, 1};
	struct memory_conf conf = {.seed = {seed, 2}, .epoch_us = EPOCH_US, .run_id = "0123456789"};

	memset(long_text, 'n', sizeof(long_text));
	memset(long_value, 'f', sizeof(long_value));
	memcpy(long_value, "daemon:77:", 10);
	*t = (struct trial){.seed = seed, .redis = redis, .now = {1}};
	rng_init(&t->rng, key);
	t->skew_us = conf.skew_us = (int64_t[]){0, 1500, 5 * SEC, 60 * SEC}[rng_below(&t->rng, 4)];
	t->tolerance_us = conf.tolerance_us = (int64_t[]){0, 0, 2500, 10 * SEC}[rng_below(&t->rng, 4)];
	t->memory = memory_new(&conf);
	t->node = sim_node_new(&(struct sim_node_conf){.key_prefix = PREFIX, .skew_us = t->skew_us, .tolerance_us = t->tolerance_us, .run_id = conf.run_id});
	script_keys_init(&t->keys, PREFIX, t->skew_us, t->tolerance_us);
	batch_init(&t->batch);
	resp_init(&t->resp);
	*t->redis->frozen_us = trial_clock(t);
	freeReplyObject(oracle_tell(t->redis, "FLUSHALL"));
}

void trial_end(struct trial *t)
{
	memory_free(t->memory);
	sim_node_free(t->node);
	script_keys_release(&t->keys);
	batch_release(&t->batch);
	resp_release(&t->resp);
}

/* Often to the very edge of some key's life, now and then beyond all of them. */
void trial_pass(struct trial *t)
{
	static const int64_t edge[] = {-1001, -1000, -1, 0, 1, 999, 1000};
	struct span value;
	struct instant until;
	int64_t to = t->now.us;

	if (trial_chance(t, 25))
		to += (int64_t)rng_below(&t->rng, 3000);
	else if (trial_chance(t, 4))
		to += (int64_t)rng_below(&t->rng, 40 * SEC);
	else if (trial_chance(t, 40) && memory_get(t->memory, PICK(t, names), t->now, &value, &until) &&
		 until.us < to + 3600 * SEC)
		to = until.us + edge[rng_below(&t->rng, sizeof(edge) / sizeof(edge[0]))];
	if (to > t->now.us)
		t->now.us = to;
	*t->redis->frozen_us = trial_clock(t);
}

static int64_t px_pick(struct trial *t)
{
	static const int64_t px[] = {1, 2, 3, 50, 1000, 30000, 30000, INT64_C(1) << 53, 0, -1};

	return px[rng_below(&t->rng, trial_chance(t, 10) ? 10 : 8)];
}

static int64_t proposal_pick(struct trial *t)
{
	int64_t fence = memory_fence(t->memory), limit = trial_clock(t) + t->skew_us + t->tolerance_us;
	int64_t n[] = {0,
		       near(t, fence),
		       near(t, limit),
		       fence + (int64_t)rng_below(&t->rng, 100000),
		       trial_clock(t),
		       limit + 3600 * SEC};

	return n[rng_below(&t->rng, 6)];
}

static int64_t range_pick(struct trial *t)
{
	int64_t room = trial_clock(t) + t->skew_us + t->tolerance_us - memory_fence(t->memory) - 1;

	if (trial_chance(t, 60))
		return 0;
	return trial_chance(t, 50) || room < 2 ? (int64_t)rng_below(&t->rng, 1025) : near(t, room);
}

/* None to three of the values, separated by blanks; borrowed until the calls of a batch were carried out. */
static struct span prior_pick(struct trial *t)
{
	char *text = t->prior[t->calls % CALLS_MAX];
	size_t n = 0;

	for (uint64_t k = rng_below(&t->rng, 4); k > 0; k--) {
		struct span value = PICK(t, values);

		if (trial_chance(t, 90))
			text[n++] = ' ';
		memcpy(text + n, value.p, value.n);
		n += value.n;
	}
	return (struct span){text, n};
}

struct call trial_call(struct trial *t, struct span marker)
{
	unsigned what = (unsigned)rng_below(&t->rng, 100);
	struct call c = {
		.id = rng_next(&t->rng),
		.node = (unsigned)rng_below(&t->rng, NODES_MAX),
		.kind = what < 45   ? CALL_ACQUIRE
			: what < 80 ? CALL_EXTEND
			: what < 95 ? CALL_RELEASE
			: what < 97 ? CALL_JOIN
			: what < 98 ? CALL_PROBE
			: what < 99 ? CALL_WITHDRAW
				    : CALL_LOOK,
		.name = PICK(t, names),
		.value = PICK(t, values),
		.marker = marker,
		.new_marker = PICK(t, markers),
		.px_ms = px_pick(t),
		.fence = proposal_pick(t),
		.range = range_pick(t),
		.not_after_ms = trial_chance(t, 30) ? near(t, trial_clock(t) / 1000) : 0,
		.create = trial_chance(t, 30),
		.exact = trial_chance(t, 20),
		.at_most = trial_chance(t, 50),
	};

	c.new_value = trial_chance(t, 80) ? c.value : PICK(t, values);
	if ((c.kind == CALL_EXTEND || c.kind == CALL_RELEASE) && trial_chance(t, 20))
		c.prior = prior_pick(t);
	if (c.kind == CALL_WITHDRAW)
		c.ticket = TEXT("1700000000000001:d2:1");
	if (c.kind == CALL_JOIN && trial_chance(t, 70))
		c.new_marker = span_fill(markers[0]);
	return c;
}

/* What others do to the same keys. expires_ms 0: no TTL. */
static void foreign_text(struct trial *t, struct span name, struct span value, int64_t expires_ms, struct instant until)
{
	char key[KEY_MAX];
	size_t n = trial_key(name, key);

	freeReplyObject(oracle_tell(t->redis, "SET %b %b", key, n, value.p, value.n));
	memory_put(t->memory, name, value, until);
	sim_node_put(t->node, name, value, expires_ms);
}

static void foreign_hash(struct trial *t, struct span name, int64_t expires_ms, struct instant until)
{
	char key[KEY_MAX];
	size_t n = trial_key(name, key);

	freeReplyObject(oracle_tell(t->redis, "HSET %b field 1", key, n));
	memory_put_foreign(t->memory, name, until);
	sim_node_put_hash(t->node, name, expires_ms);
}

void trial_foreign(struct trial *t)
{
	struct span name = PICK(t, names), value = PICK(t, foreign);
	int64_t px = 1 + (int64_t)rng_below(&t->rng, 5000);
	int64_t expires_ms = trial_chance(t, 50) ? trial_clock(t) / 1000 + px : 0;
	struct instant until = expires_ms ? (struct instant){(expires_ms + 1) * 1000 - EPOCH_US} : INSTANT_NEVER;
	char key[KEY_MAX];
	size_t n = trial_key(name, key);

	freeReplyObject(oracle_tell(t->redis, "DEL %b", key, n));
	memory_remove(t->memory, name);
	sim_node_delete(t->node, name);
	if (trial_chance(t, 40))
		return;
	if (trial_chance(t, 50))
		foreign_text(t, name, value, expires_ms, until);
	else
		foreign_hash(t, name, expires_ms, until);
	if (expires_ms)
		freeReplyObject(oracle_tell(t->redis, "PEXPIRE %b %lld", key, n, (long long)px));
}

struct span trial_marker(struct trial *t)
{
	return PICK(t, markers);
}
