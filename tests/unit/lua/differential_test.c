/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/redis/lua on a real Redis, daemon/store on its own, and the scripts on a simulated node get the same random calls at the same moments. The test
 * compares every answer field by field, and then the keys. The clock of Redis stands where the test puts it, so keys are compared to the microsecond.
 * REDLOCKD_SEED=n repeats it.
 */
#include "daemon/base/map.h"
#include "tests/fixture/seed.h"
#include "tests/fixture/random_calls.h"

#include <check.h>
#include <stdio.h>

#define TRIALS  8
#define BATCHES 1000

static struct clocked_redis real;
static unsigned seen[CALL_TABLE + 1][128]; /* how often each code was answered; [kind]['!'] refused */

static void suite_start(void)
{
	clocked_redis_start(&real, EPOCH_US);
}

static void suite_stop(void)
{
	clocked_redis_stop(&real);
}

/* Version, run_id and replid differ between servers. */
static bool probe_equal(const struct probe *x, const struct probe *y)
{
	if (!x || !y)
		return x == y;
	return span_equal(x->marker, y->marker) && span_equal(x->role, y->role) && span_equal(x->policy, y->policy) &&
	       x->maxmemory == y->maxmemory && x->evicted == y->evicted && x->loading == y->loading &&
	       span_equal(x->refusal, y->refusal) && span_equal(x->called, y->called) && x->defect == y->defect &&
	       x->own_data == y->own_data && x->run_id.n && y->run_id.n && x->replid.n && x->version.n;
}

static bool answer_equal(const struct answer *x, const struct answer *y)
{
	return x->call == y->call && x->node == y->node && x->class == y->class && x->code == y->code &&
	       x->server_us == y->server_us && x->fence == y->fence && x->pttl_ms == y->pttl_ms &&
	       span_equal(x->found, y->found) && span_equal(x->text, y->text) && probe_equal(x->probe, y->probe);
}

static const char *answer_print(const struct answer *a, char *out, size_t size)
{
	snprintf(out, size, "class=%d code=%c server_us=%lld fence=%lld pttl_ms=%lld found='%.*s' text='%.*s'", (int)a->class,
		 a->code ? a->code : '-', (long long)a->server_us, (long long)a->fence, (long long)a->pttl_ms, (int)a->found.n,
		 a->found.n ? a->found.p : "", (int)a->text.n, a->text.n ? a->text.p : "");
	return out;
}

static void answer_check(const struct random_calls *t, const struct call *c, const char *who, const struct answer *mine,
			 const struct answer *theirs)
{
	char a[512], b[512];

	if (answer_equal(mine, theirs))
		return;
	ck_abort_msg("seed %llu: kind %d name '%.*s' value '%.*s' px %lld fence %lld range %lld not_after %lld "
		     "form %d beyond %d create %d exact %d at_most %d\n"
		     "%s: %s\nredis:  %s",
		     (unsigned long long)t->seed, (int)c->kind, (int)c->name.n, c->name.p, (int)c->value.n, c->value.p,
		     (long long)c->px_ms, (long long)c->fence, (long long)c->range, (long long)c->not_after_ms, (int)c->form, c->beyond, c->create,
		     c->exact, c->at_most, who,
		     answer_print(mine, a, sizeof(a)), answer_print(theirs, b, sizeof(b)));
}

static void answer_compare(struct random_calls *t, const struct answer *redis)
{
	const struct call *c = &t->call[redis->call];
	struct answer mine, theirs = *redis;

	theirs.node = c->node; /* the batch is told one node for all */
	if (redis->class == ANSWER_EXECUTED)
		memory_set_fence(t->memory, redis->fence - (redis->code == 'G')); /* a batch that is refused a lock leaves a gap in the tokens */
	memory_call(t->memory, c, t->now, &mine);
	answer_check(t, c, "memory", &mine, &theirs);
	answer_check(t, c, "model", &t->simulated[redis->call], &theirs);
	seen[c->kind][(unsigned char)(mine.code ? mine.code : '!')]++;
}

/* A probe is compared at once: what it says lasts no longer. */
static void answer_note(void *context, const struct answer *redis)
{
	struct random_calls *t = context;

	if (t->batch.script == SCRIPT_BATCH)
		t->redis_says[t->answered] = *redis;
	else
		answer_compare(t, redis);
	t->answered++;
}

/* Whether the acquires of a batch may get the tokens that they propose: see lua/free.lua. */
static bool proposals_suit(const struct random_calls *t)
{
	unsigned n = t->batch.part[BATCH_ACQUIRES].count;
	const struct entry *e = t->batch.part[BATCH_ACQUIRES].entry;
	int64_t limit = random_clock(t) + t->skew_us + t->tolerance_us;

	for (unsigned i = 0; i < n; i++) {
		if (e[i].terms.not_after_ms && random_clock(t) / 1000 > e[i].terms.not_after_ms)
			return false;
	}
	return n && e->fence > memory_fence(t->memory) && e[n - 1].fence + e[n - 1].range <= limit;
}

/* The memory store carries out one call after the other, in the order of lua/free.lua: releases, acquires that got the tokens that they propose, all others. */
static void answers_compare(struct random_calls *t)
{
	unsigned releases = t->batch.part[BATCH_RELEASES].count, acquires = releases + t->batch.part[BATCH_ACQUIRES].count;
	bool done[CALLS_MAX] = {false}, suit = proposals_suit(t);
	struct span value;
	struct instant until;

	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < t->answered; i++) {
			const struct answer *a = &t->redis_says[i];
			bool got = suit && i < acquires && a->code == 'G' && a->fence == t->call[a->call].fence &&
				   !memory_get(t->memory, t->call[a->call].name, t->now, &value, &until); /* else it has the key already */

			if (done[i] || (!round && i >= releases && !got))
				continue;
			done[i] = true;
			answer_compare(t, a);
		}
	}
}

static uint64_t hash_of(struct span name)
{
	static const uint64_t key[2];

	return siphash(key, name.p, name.n);
}

/* One script call, as the daemon sends it and reads it. */
static void batch_carry_out(struct random_calls *t)
{
	const struct script_sink sink = {t, answer_note};
	struct span marker = random_chance(t, 90) ? memory_marker(t->memory) : random_marker(t);
	unsigned n = 1 + (unsigned)rng_below(&t->rng, CALLS_MAX);
	char copy[MARKER_MAX];

	memcpy(copy, marker.n ? marker.p : "", marker.n);
	marker.p = copy;
	int64_t fence_seen = random_chance(t, 90) ? 0 : memory_fence(t->memory) - 1 + (int64_t)rng_below(&t->rng, 3);

	batch_reset(&t->batch);
	for (t->calls = t->answered = 0; t->calls < n; t->calls++) {
		t->call[t->calls] = random_call(t, marker);
		t->call[t->calls].id = t->calls;
		t->call[t->calls].seen = fence_seen;
		if (!batch_accepts(&t->batch, &t->call[t->calls]))
			break;
		batch_add(&t->batch, &t->keys, &t->call[t->calls], hash_of(t->call[t->calls].name));
	}
	sim_node_call(t->node, t->call, t->calls, random_clock(t), t->simulated);
	random_exchange(t);
	ck_assert_int_eq(script_answer(&t->batch, &t->resp, 0, &sink), 0);
	ck_assert_uint_eq(t->answered, t->calls);
	if (t->batch.script == SCRIPT_BATCH)
		answers_compare(t);
	memory_set_fence(t->memory, sim_node_fence(t->node));
}

/* What stands at a key: the text of a string, "" for another type, and what PTTL says of it. */
struct standing {
	struct span value;
	int64_t pttl_ms;
};

static struct standing memory_key_view(struct random_calls *t, struct span name)
{
	struct standing s = {.pttl_ms = -2};
	struct instant until;

	if (memory_get(t->memory, name, t->now, &s.value, &until))
		s.pttl_ms = until.us == INSTANT_NEVER.us ? -1 : (until.us + EPOCH_US) / 1000 - 1 - random_clock(t) / 1000;
	return s;
}

static struct standing node_standing(struct random_calls *t, struct span name)
{
	struct standing s = {.pttl_ms = -2};
	int64_t expires_ms;

	if (sim_node_get(t->node, name, random_clock(t), &s.value, &expires_ms))
		s.pttl_ms = expires_ms ? expires_ms - random_clock(t) / 1000 : -1;
	return s;
}

static void standing_check(const struct random_calls *t, const char *who, struct standing mine, struct standing theirs)
{
	ck_assert_msg(mine.pttl_ms == theirs.pttl_ms && span_equal(mine.value, theirs.value),
		      "seed %llu: %s: '%.*s' for %lld ms, in redis '%.*s' for %lld ms", (unsigned long long)t->seed, who,
		      (int)mine.value.n, mine.value.p, (long long)mine.pttl_ms, (int)theirs.value.n, theirs.value.p,
		      (long long)theirs.pttl_ms);
}

static void key_compare(struct random_calls *t, struct span name)
{
	char key[KEY_MAX];
	size_t n = random_key(name, key);
	redisReply *value = clocked_redis_tell(&real, "GET %b", key, n);
	redisReply *pttl = clocked_redis_tell(&real, "PTTL %b", key, n);
	struct standing theirs = {.pttl_ms = pttl->integer};

	if (value->type == REDIS_REPLY_STRING)
		theirs.value = (struct span){value->str, value->len};
	standing_check(t, "memory", memory_key_view(t, name), theirs);
	standing_check(t, "model", node_standing(t, name), theirs);
	freeReplyObject(value);
	freeReplyObject(pttl);
}

static void text_compare(const char *key, struct span in_memory, struct span in_node)
{
	redisReply *theirs = clocked_redis_tell(&real, "GET %s", key);
	struct span text = {theirs->str ? theirs->str : "", theirs->len};

	if (span_equal(text, SPAN("0")))
		text = SPAN(""); /* a fence of 0, which a call that granted nothing leaves on a new server, says what none says */
	ck_assert_msg(span_equal(text, in_memory) && span_equal(text, in_node), "%s: '%.*s', memory '%.*s', model '%.*s'", key,
		      (int)text.n, text.p, (int)in_memory.n, in_memory.p, (int)in_node.n, in_node.p);
	freeReplyObject(theirs);
}

/* "" for none */
static struct span fence_text(int64_t fence, char out[32])
{
	out[0] = 0;
	if (fence)
		snprintf(out, 32, "%lld", (long long)fence);
	return span_of(out);
}

static void state_compare(struct random_calls *t)
{
	char in_memory[32], in_node[32];
	size_t i;

	for (i = 0; random_name(i).n; i++)
		key_compare(t, random_name(i));
	text_compare("redlockd:" PREFIX "!fence", fence_text(memory_fence(t->memory), in_memory),
		     fence_text(sim_node_fence(t->node), in_node));
	text_compare("redlockd:" PREFIX "!meta", memory_marker(t->memory), sim_node_marker(t->node));
}

/* A run that never met an answer proves nothing about it. */
static void all_rows_met(void)
{
	static const char *const codes[] = {"P", "JX", "GBSKQLF!", "EABXKMQF!", "RN", "X", "MBSKQ", "XRMBKQ", "TQ"};
	unsigned kind;
	const char *c;

	for (kind = 0; kind <= CALL_TABLE; kind++)
		for (c = codes[kind]; *c; c++)
			ck_assert_msg(seen[kind][(unsigned char)*c] > 0, "no call of kind %u was answered %c", kind, *c);
}

FIXTURE(.before_all = suite_start, .after_all = suite_stop, .seconds = 120)

TEST(memory_and_model_answer_and_keep_what_the_scripts_on_a_real_redis_do)
{
	uint64_t seed = seed_pick("differential");
	unsigned i, k, calls = 0;
	struct random_calls t;

	for (i = 0; i < TRIALS; i++) {
		random_begin(&t, &real, seed + i);
		for (k = 0; k < BATCHES; k++) {
			random_pass(&t);
			if (random_chance(&t, 6))
				random_foreign(&t);
			batch_carry_out(&t);
			calls += t.calls;
			if (k % 20 == 0)
				state_compare(&t);
		}
		random_end(&t);
	}
	all_rows_met();
	printf("differential: %u calls agree\n", calls);
}
