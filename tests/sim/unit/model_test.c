/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tests/sim/redis/model_*.c compared with a real Redis: random commands, well formed and not, from clients and from scripts, on the same few keys. Both clocks
 * stand where the test puts them, often where a key expires. The test compares each reply, and then the keys. REDLOCKD_SEED=n repeats it.
 */
#include "daemon/base/rng.h"
#include "tests/fixture/redis_pair.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>

#define NOW       INT64_C(1700000000123456)
#define ROUNDS    20000
#define STEPS_MAX 4
#define WORDS_MAX 16

static struct redis_pair pair;
static struct rng rng;

static const char *const keys[] = {"a", "b", "c", "d", ""};
static const char *const values[] = {
	"",   "x",   "0",  "-1",        "41", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "01", "+1",
	" 1", "1.5", "-0", "two words", "inf"};
static const char *const fields[] = {"f", "g", "h", ""};
static const char *const members[] = {"m", "n", "mm", "", "\xff", "z"};
static const char *const scores[] = {"0",   "1",  "2",   "2",    "-1",   "1.5",  "0.1", "1700000000123",
				     "1e3", "-0", "inf", "-inf", "+inf", "0x10", "nan", "abc",
				     "",    " 1", "1 "};
static const char *const bounds[] = {"-inf", "+inf", "inf",  "0",     "1",   "2", "(1", "(2",
				     "-1",   "1.5",  "(inf", "(-inf", "((1", "(", "x",  ""};
static const char *const places[] = {"0", "1", "2", "-1", "-2", "-100", "100", "x", "1.5"};
static const char *const times[] = {
	"1", "2", "1000", "60000", "0", "-1", "9223372036854775807", "-9223372036854775808", "x", "1.5", "", "9007199254740992"};

/* A letter behind $ stands for a word of its list, t for a moment near the clock. A word in brackets is there half of the time. */
static const char *const commands[] = {
	"GET $k",
	"MGET $k $k $k",
	"SET $k $v",
	"SET $k $v PX $d [KEEPTTL]",
	"SET $k $v PXAT $t",
	"SET $k $v EX $d",
	"SET $k $v exat $d",
	"SET $k $v [NX] [XX] [GET] [KEEPTTL]",
	"SET $k $v [nx] [get] PX $d",
	"SET $k $v [KEEPTTL] [PX] [$d] [EX] [$d] [NX]",
	"SET $k $v [nosuch] [PX]",
	"INCR $k",
	"INCRBY $k $v",
	"DEL $k [$k] [$k]",
	"DEL $k",
	"EXISTS $k [$k] [$k]",
	"TYPE $k",
	"PTTL $k",
	"PEXPIRETIME $k",
	"PERSIST $k",
	"PEXPIRE $k $d",
	"PEXPIRE $k $d [NX] [XX] [GT] [LT]",
	"PEXPIREAT $k $t",
	"PEXPIREAT $k $t [NX] [XX] [GT] [LT] [nosuch]",
	"HSET $k $f $v",
	"HSET $k $f $v $f $v [$f]",
	"HSETNX $k $f $v",
	"HGET $k $f",
	"HMGET $k $f $f",
	"HGETALL $k",
	"HEXISTS $k $f",
	"HLEN $k",
	"HDEL $k $f [$f] [$f]",
	"HINCRBY $k $f $v",
	"ZADD $k $s $m",
	"ZADD $k $s $m $s $m [$s]",
	"ZADD $k [NX] [XX] [CH] $s $m $s $m",
	"ZADD $k [GT] [LT] [CH] $s $m $s $m",
	"ZADD $k [nx] [gt] $s $m",
	"ZADD $k [CH] [NX]",
	"ZREM $k $m [$m] [$m]",
	"ZCARD $k",
	"ZSCORE $k $m",
	"ZRANK $k $m",
	"ZCOUNT $k $b $b",
	"ZRANGE $k $i $i [WITHSCORES] [REV]",
	"ZRANGE $k $b $b BYSCORE [WITHSCORES] [REV]",
	"ZRANGE $k $b $b BYSCORE LIMIT $i $i [WITHSCORES] [REV]",
	"ZRANGE $k $i $i [LIMIT] [$i] [$i] [nosuch]",
	"ZRANGEBYSCORE $k $b $b [WITHSCORES]",
	"ZRANGEBYSCORE $k $b $b [WITHSCORES] LIMIT $i $i [BYSCORE]",
	"ZREVRANGEBYSCORE $k $b $b [WITHSCORES] [LIMIT] [$i] [$i]",
	"ZREMRANGEBYSCORE $k $b $b",
	"PUBLISH $k $v",
	"TIME",
	"PING [$v] [$v]",
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static unsigned agreed[COMMANDS][2]; /* how often it was carried out; how often it was an error */

/* How a command is sent. Numbers: each word that Lua takes for a number goes as a number. */
static const char *const ways[] = {
	NULL,
	"return redis.call(unpack(ARGV))",
	"return redis.pcall(unpack(ARGV))",
	"local w = {} for i, v in ipairs(ARGV) do w[i] = tonumber(v) or v end return redis.pcall(unpack(w))",
};

static const char several[] = "local rows, w = {}, {} "
			      "for _, v in ipairs(ARGV) do "
			      "if v == '|' then rows[#rows + 1] = redis.pcall(unpack(w)) w = {} else w[#w + 1] = v end "
			      "end return rows";

static void suite_start(void)
{
	redis_pair_start(&pair, NOW);
}

static void suite_stop(void)
{
	redis_pair_stop(&pair);
}

static bool chance(unsigned percent)
{
	return rng_below(&rng, 100) < percent;
}

#define PICK(list) span_of((list)[rng_below(&rng, sizeof(list) / sizeof((list)[0]))])

/* A moment at the edge of now, or beyond. */
static struct span moment_pick(void)
{
	static const int64_t away[] = {-1000, -1, 0, 1, 2, 1000, 60000};
	static char digits[20];

	if (chance(15))
		return PICK(times);
	return (struct span){digits, wire_digits(pair.now_us / 1000 + away[rng_below(&rng, 7)], digits)};
}

static struct span word_pick(char kind)
{
	switch (kind) {
	case 'k':
		return PICK(keys);
	case 'v':
		return PICK(values);
	case 'f':
		return PICK(fields);
	case 'm':
		return PICK(members);
	case 's':
		return chance(70) ? span_of(scores[rng_below(&rng, 8)]) : PICK(scores);
	case 'b':
		return chance(70) ? span_of(bounds[rng_below(&rng, 9)]) : PICK(bounds);
	case 'i':
		return chance(80) ? span_of(places[rng_below(&rng, 5)]) : PICK(places);
	case 'd':
		return chance(70) ? span_of(times[rng_below(&rng, 4)]) : PICK(times);
	default:
		return moment_pick();
	}
}

/* One word of the pattern; those in brackets not always. */
static size_t word_add(struct span pattern, struct span *word, size_t n)
{
	if (pattern.p[0] == '[') {
		if (chance(65))
			return n;
		pattern = (struct span){pattern.p + 1, pattern.n - 2};
	}
	word[n] = pattern.p[0] == '$' ? word_pick(pattern.p[1]) : pattern;
	return n + 1;
}

static size_t command_make(const char *pattern, struct span *word)
{
	const char *end;
	size_t n = 0;

	for (; *pattern; pattern = *end ? end + 1 : end) {
		end = strchrnul(pattern, ' ');
		n = word_add((struct span){pattern, (size_t)(end - pattern)}, word, n);
	}
	/* Now and then one word is missing. */
	return n > 1 && chance(2) ? n - 1 : n;
}

static void one_told(void)
{
	size_t which = rng_below(&rng, COMMANDS), n;
	const char *way = ways[rng_below(&rng, sizeof(ways) / sizeof(ways[0]))];
	struct span word[3 + WORDS_MAX] = {SPAN("EVAL"), SPAN(""), SPAN("0")};
	int type;

	n = command_make(commands[which], word + 3);
	if (way)
		word[1] = span_of(way);
	type = way ? redis_pair_command(&pair, word, n + 3) : redis_pair_command(&pair, word + 3, n);
	agreed[which][type == REDIS_REPLY_ERROR]++;
}

static void several_told(void)
{
	struct span word[3 + STEPS_MAX * (WORDS_MAX + 1)] = {SPAN("EVAL"), span_of(several), SPAN("0")};
	size_t steps = 1 + rng_below(&rng, STEPS_MAX), n = 3;

	while (steps--) {
		n += command_make(commands[rng_below(&rng, COMMANDS)], word + n);
		word[n++] = SPAN("|");
	}
	redis_pair_command(&pair, word, n);
}

/* Often to the millisecond in which a key ends, or the microsecond before or behind it. */
static void time_pass(void)
{
	static const int64_t edge[] = {-1, 0, 1, 999, 1000, 1001};
	const struct datum *datum = data_peek(&pair.redis.model.data, PICK(keys));
	int64_t to = pair.now_us + (int64_t)rng_below(&rng, 1500);

	if (datum && datum->expires_ms < pair.now_us / 1000 + 100000 && chance(70))
		to = datum->expires_ms * 1000 + edge[rng_below(&rng, sizeof(edge) / sizeof(edge[0]))];
	if (to > pair.now_us)
		redis_pair_clock(&pair, to);
}

static void key_compare(const char *key)
{
	static const char *const looks[] = {"TYPE", "PEXPIRETIME", "GET", "HGETALL"};
	size_t i;

	for (i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		redis_pair_command(&pair, (struct span[]){span_of(looks[i]), span_of(key)}, 2);
	redis_pair_command(&pair, (struct span[]){SPAN("ZRANGE"), span_of(key), SPAN("0"), SPAN("-1"), SPAN("WITHSCORES")}, 5);
}

static void state_compare(void)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		key_compare(keys[i]);
}

/* A run that never saw a command succeed proves nothing about it. */
static void all_commands_met(void)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i], "SET $k $v [nosuch] [PX]") == 0 || strcmp(commands[i], "ZADD $k [CH] [NX]") == 0)
			ck_assert_uint_gt(agreed[i][1], 0);
		else
			ck_assert_msg(agreed[i][0] > 0, "never carried out: %s", commands[i]);
	}
}

FIXTURE(.before_all = suite_start, .after_all = suite_stop, .seconds = 120)

TEST(the_model_answers_and_keeps_what_a_real_redis_does)
{
	uint64_t seed = seed_pick("model");
	unsigned i;

	rng_init(&rng, (uint64_t[]){seed, 3});
	redis_pair_reset(&pair);
	for (i = 0; i < ROUNDS; i++) {
		snprintf(pair.note, sizeof(pair.note), "seed %llu, round %u,", (unsigned long long)seed, i);
		if (chance(30))
			time_pass();
		if (chance(80))
			one_told();
		else
			several_told();
		if (i % 50 == 0)
			state_compare();
		if (chance(1))
			redis_pair_reset(&pair);
	}
	all_commands_met();
	printf("model: %u rounds agree\n", i);
}
