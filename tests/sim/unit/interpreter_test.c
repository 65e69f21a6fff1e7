/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/sim/redis/interpreter.c, strtod.c, load8.h and the names of commands: a script must not notice what makes the simulator fast. */
#include "daemon/base/rng.h"
#include "tests/sim/redis/load8.h"
#include "tests/sim/redis/redis.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct redis one, other;

static void servers_start(void)
{
	redis_init(&one);
	redis_init(&other);
}

static void servers_stop(void)
{
	redis_release(&one);
	redis_release(&other);
}

/* EVAL script 1 key arg; its reply. */
static const char *eval(struct redis *r, const char *script, const char *key, const char *arg)
{
	static struct buf out;
	struct span word[] = {SPAN("EVAL"), span_of(script), SPAN("1"), span_of(key), span_of(arg)};

	buf_clear(&out);
	redis_command(r, 1000000, word, 5, &out);
	buf_append(&out, "", 1);
	return buf_begin(&out);
}

FIXTURE(.setup = servers_start, .teardown = servers_stop)

TEST(each_server_has_its_own_keys_under_the_same_script)
{
	static const char script[] = "local was = redis.call('GET', KEYS[1]); redis.call('SET', KEYS[1], ARGV[1]); return was";

	ck_assert_str_eq(eval(&one, script, "k", "a"), "$-1\r\n");
	ck_assert_str_eq(eval(&other, script, "k", "b"), "$-1\r\n");
	ck_assert_str_eq(eval(&one, script, "k", "c"), "$1\r\na\r\n");
	ck_assert_str_eq(eval(&other, script, "k", "d"), "$1\r\nb\r\n");
}

TEST(each_server_has_a_script_cache_of_its_own)
{
	static const char script[] = "return 7 + #ARGV";
	struct span evalsha[] = {SPAN("EVALSHA"), SPAN(""), SPAN("0")};
	char sha[SHA1_HEX + 1];
	struct buf out;

	sha1_hex(span_of(script), sha);
	evalsha[1] = span_of(sha);
	ck_assert_str_eq(eval(&one, script, "k", "a"), ":8\r\n");
	buf_init(&out);
	redis_command(&one, 0, evalsha, 3, &out);
	redis_command(&other, 0, evalsha, 3, &out);
	buf_append(&out, "", 1);
	ck_assert_str_eq(buf_begin(&out), ":7\r\n-NOSCRIPT No matching script. Please use EVAL.\r\n");
	buf_release(&out);
}

TEST(a_script_starts_clean_however_much_garbage_others_have_left)
{
	static const char litter[] = "local t = {} for i = 1, 2000 do t[i] = KEYS[1] .. i .. ARGV[1] end return #t";
	static const char clean[] = "local n = 0 for _ in pairs({a = 1, b = 2, [KEYS[1]] = 3}) do n = n + 1 end return {n, KEYS[1], ARGV[1]}";
	char text[40];
	int i;

	for (i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ck_assert_str_eq(eval(&one, litter, text, text), ":2000\r\n");
		ck_assert_str_eq(eval(&other, clean, "k", "v"), "*3\r\n:3\r\n$1\r\nk\r\n$1\r\nv\r\n");
	}
}

TEST(a_script_that_fails_leaves_the_next_one_alone)
{
	static const char fails[] = "local t = string.rep('x', 300000) error({err = 'MINE ' .. ARGV[1]})";
	int i;

	for (i = 0; i < 20; i++) {
		ck_assert(strncmp(eval(&one, fails, "k", "v"), "-MINE v script: ", 16) == 0);
		ck_assert(strncmp(eval(&one, "return (", "k", "v"), "-ERR Error compiling script", 27) == 0);
		ck_assert_str_eq(eval(&one, "return ARGV[1]", "k", "v"), "$1\r\nv\r\n");
	}
}

/* --- numbers --------------------------------------------------------------------------------------------------------- */

double __real_strtod(const char *text, char **ret_end);
double __wrap_strtod(const char *text, char **ret_end);

static void numbers_agree(const char *text)
{
	char *quick_end, *end;
	double quick = __wrap_strtod(text, &quick_end), n = __real_strtod(text, &end);

	ck_assert_msg(memcmp(&quick, &n, sizeof(n)) == 0, "%s: %.17g, not %.17g", text, quick, n);
	ck_assert_msg(quick_end == end, "%s: ends elsewhere", text);
}

FIXTURE()

TEST(a_number_is_read_as_strtod_reads_it)
{
	static const char *const text[] = {"", " ", "0", "00", "7 ", " 7", "7x", "x", "-1", "-0", "+5", "1.5", "1e3", "1E", "0x1F", "0x", "inf", "nan", ".5",
					   "5.", "900719925474099", "9007199254740991", "9007199254740992", "9007199254740993",
					   "99999999999999999999", "1700000000000000", "1700000000123456 ", "12345678901234567890"};
	const uint64_t key[2] = {3, 4};
	char digits[24];
	struct rng r;
	size_t i;

	for (i = 0; i < sizeof(text) / sizeof(*text); i++)
		numbers_agree(text[i]);
	rng_init(&r, key);
	for (i = 0; i < 100000; i++) {
		snprintf(digits, sizeof(digits), "%" PRIu64, rng_next(&r) >> rng_below(&r, 64));
		numbers_agree(digits);
	}
}

TEST(eight_bytes_are_a_number_whatever_stands_behind_them)
{
	static const char text[] = "\x81\x02\xf3zA\xffq\x80 and more";
	uint64_t expected = 0;
	size_t n;

	for (n = 0; n <= 12; n++) {
		ck_assert_uint_eq(load8(text, n), expected);
		if (n < 8)
			expected |= (uint64_t)(unsigned char)text[n] << 8 * n;
	}
}

TEST(a_command_is_known_by_its_whole_name_in_either_case)
{
	static const char *const known[] = {"GET", "get", "gEt", "TIME", "EXISTS", "PEXPIREAT", "zremrangebyscore", "ZRemRangeByScore"};
	static const char *const unknown[] = {"", "GE", "GETT", "GET ", "G\x05T", "EXIST", "PEXPIREAU", "ZREMRANGEBYSCOR",
					      "ZREMRANGEBYSCORES", "XREMRANGEBYSCORE"};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		ck_assert_msg(model_command(span_of(known[i])) != NULL, "%s", known[i]);
		ck_assert(strcasecmp(model_command(span_of(known[i]))->name, known[i]) == 0);
	}
	for (i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		ck_assert_msg(!model_command(span_of(unknown[i])), "%s", unknown[i]);
}
