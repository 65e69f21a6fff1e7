/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/sim/redis/binding.c: how replies become Lua values and Lua values become replies, compared with a real Redis. */
#include "daemon/base/mem.h"
#include "tests/fixture/redis_pair.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW INT64_C(1700000000123456)

static struct redis_pair pair;

static void suite_start(void)
{
	redis_pair_start(&pair, NOW);
}

static void suite_stop(void)
{
	redis_pair_stop(&pair);
}

static void scripts_agree(const char *const *script, size_t n)
{
	size_t i;

	redis_pair_reset(&pair);
	redis_pair_tell(&pair, "SET text some");
	redis_pair_tell(&pair, "HSET hash f 1");
	redis_pair_tell(&pair, "ZADD zset 1.5 m 2 n");
	for (i = 0; i < n; i++)
		redis_pair_eval(&pair, script[i], "3 text hash zset a 1");
}

#define AGREE(scripts) scripts_agree(scripts, sizeof(scripts) / sizeof(*(scripts)))

FIXTURE(.before_all = suite_start, .after_all = suite_stop, .seconds = 60)

TEST(the_value_that_a_script_returns_becomes_the_reply_of_redis)
{
	static const char *const scripts[] = {
		"",
		"return nil",
		"return true",
		"return false",
		"return 3.99",
		"return -3.99",
		"return -0.5",
		"return 2^53 + 1",
		"return 2^62",
		"return 2^63",
		"return -2^63",
		"return 2^70",
		"return -2^70",
		"return 1/0",
		"return -1/0",
		"return 0/0",
		"return 'a\\0b\\r\\n'",
		"return ''",
		"return {}",
		"return {1, 2, nil, 4}",
		"return {1, false, true, 'x', {2, {3.7}}, {}}",
		"return {nil, 1}",
		"return {a = 1, 2}",
		"return {[2] = 1}",
		"return {ok = 'fine'}",
		"return {ok = 'two\\r\\nlines'}",
		"return {ok = 1}",
		"return {err = 'MY own'}",
		"return {err = 'own'}",
		"return {err = 'MY\\nown'}",
		"return {err = 7}",
		"return {err = 'MY own', ok = 'fine', 1}",
		"return {1, {err = 'MY own'}, {ok = 'fine'}}",
		"return redis.error_reply('own')",
		"return redis.error_reply('MY own')",
		"return redis.error_reply('-MY own')",
		"return redis.error_reply('-own')",
		"return redis.error_reply(1)",
		"return redis.status_reply('fine')",
		"return redis.status_reply()",
		"return print",
		"return function() end",
		"return coroutine ~= nil",
		"return redis.sha1hex('')",
		"return redis.sha1hex(ARGV[1])",
		"local s = '' for n = 54, 65 do s = s .. redis.sha1hex(string.rep('x', n)) end return s",
		"return {#KEYS, #ARGV, KEYS[1], ARGV[2], KEYS[4], ARGV[3]}",
	};

	AGREE(scripts);
}

TEST(replies_of_commands_become_the_lua_values_of_redis)
{
	static const char *const scripts[] = {
		"return redis.call('GET', KEYS[1])",
		"return redis.call('GET', 'none') == false",
		"return type(redis.call('GET', 'none'))",
		"return redis.call('SET', 'x', 'y').ok",
		"return redis.call('SET', 'x', 'y')",
		"return redis.call('SET', 'x', 'y', 'NX') == false",
		"return type(redis.call('EXISTS', KEYS[1]))",
		"return redis.call('HGETALL', KEYS[2])",
		"return redis.call('HMGET', KEYS[2], 'f', 'none', 'f')",
		"return #redis.call('HMGET', KEYS[2], 'f', 'none', 'f')",
		"return redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')",
		"return redis.call('ZSCORE', KEYS[3], 'm')",
		"return redis.call('TIME')",
		"local t = redis.call('TIME') return {t[1] * 1000000 + t[2], type(t[1])}",
		"redis.call('SET', 'n', '9007199254740993') return redis.call('INCR', 'n')",
		"return redis.pcall('GET', KEYS[2])",
		"return redis.pcall('GET', KEYS[2]).err",
		"return {redis.pcall('GET', KEYS[2])}",
		"return type(redis.pcall('GET', KEYS[2]))",
		"return redis.pcall('GET').err",
		"return redis.pcall('nosuch', 1).err",
		"return redis.pcall().err",
		"return redis.pcall({}).err",
		"return redis.pcall('GET', {}).err",
		"return redis.pcall('GET', nil).err",
		"return redis.pcall('EVAL', 'return 1', 0).err",
		"return redis.pcall('SCRIPT', 'FLUSH').err",
		"return redis.pcall('SET', 'x', 'y', 'PX', 0).err",
		"return redis.pcall('PING')",
		"return redis.call('PUBLISH', 'channel', 'text')",
		"return tostring(redis.pcall('INFO', 'replication'):match('role:(%a+)'))",
	};

	AGREE(scripts);
}

TEST(numbers_become_arguments_by_seventeen_digits)
{
	static const char *const scripts[] = {
		"redis.call('SET', 'n', 1) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 0) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', -0) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', -0/1) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', -12345) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 0.5) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 0.1) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', -1.1) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 1/3) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 1e-7) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 1700000000123456) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 2^53) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 1e16) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 99999999999999984) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 1e17) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', -1e17) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 1e300) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', 1/0) return redis.call('GET', 'n')",
		"redis.call('SET', 'n', -1/0) return redis.call('GET', 'n')",
		"return redis.call('SET', 'x', 'y', 'PX', 1500.5)",
		"return redis.call('SET', 'x', 'y', 'PX', 2^53)",
		"redis.call('SET', 'x', 'y', 'PX', 1500) return redis.call('PTTL', 'x')",
		"return tostring(1700000000123456)",
		"return 1700000000123456 .. ''",
		"return string.format('%.0f', 1700000000123456)",
	};

	AGREE(scripts);
}

TEST(errors_are_told_in_redis_words)
{
	static const char *const scripts[] = {
		"return redis.call('GET', KEYS[2])",
		"\n\nreturn redis.call('GET', KEYS[2])",
		"return redis.call('SET', 'x', 'y', 'PX', 'z')",
		"return redis.call('GET')",
		"return redis.call()",
		"return redis.call({})",
		"return redis.call('nosuch')",
		"return redis.call('EVAL', 'return 1', 0)",
		"error('own')",
		"error('own', 0)",
		"error({err = 'MY own'})",
		"error({err = 'MY own', source = 's', line = 3})",
		"error(7)",
		"error(redis.error_reply('MY own'))",
		"local function deep()\n error('own')\nend\n deep()",
		"local function deep()\n return redis.call('GET', KEYS[2])\nend\n return deep()",
		"return nosuch",
		"return nosuch.field",
		"name = 1",
		"local t = nil return t.x",
		"return 1 + {}",
		"return #nil",
		"return ('x'):nosuch()",
		"return string.rep()",
		"return tonumber('7', 99)",
		"assert(false, 'own')",
		"assert(nil)",
		"return {pcall(function() error('own') end)}",
		"return {pcall(function() error({err = 'MY own'}) end)}",
		"return select(2, pcall(function() redis.call('GET', KEYS[2]) end))",
		"return select(2, pcall(function() redis.call('GET', KEYS[2]) end)).err",
		"return {xpcall(function() error('own', 0) end, function(e) return e .. '!' end)}",
		"return",
		"retrun 1",
		"return 'open",
		"for i = 1 do end",
	};

	AGREE(scripts);
}

TEST(the_functions_of_redis_are_there_and_no_others)
{
	static const char *const scripts[] = {
		"return type(string.match)",
		"return type(table.concat)",
		"return type(math.floor)",
		"return type(unpack)",
		"return type(ipairs)",
		"return type(tonumber)",
		"return type(select)",
		"return type(setmetatable)",
		"return type(rawget)",
		"return type(string.gmatch)",
		"return type(table.sort)",
		"return type(next)",
		"return dofile",
		"return loadfile",
		"return print",
		"return require",
		"return module",
		"return io",
		"return package",
		"return debug",
		"return math.max(1, 7)",
		"return string.match('d1:2:ff', '^([^:]+:[^:]+):%x+$')",
		"local t = {3, 1, 2} table.sort(t) return table.concat(t, ',')",
	};

	AGREE(scripts);
}

TEST(the_script_cache_knows_what_was_loaded_or_run_until_it_is_flushed)
{
	static const char sha[] = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"; /* return 1 */
	char words[128];

	redis_pair_reset(&pair);
	redis_pair_tell(&pair, "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0");
	ck_assert_int_eq(redis_pair_eval(&pair, "return 1", "0"), REDIS_REPLY_INTEGER);
	snprintf(words, sizeof(words), "EVALSHA %s 0", sha);
	ck_assert_int_eq(redis_pair_tell(&pair, words), REDIS_REPLY_INTEGER);
	ck_assert_int_eq(redis_pair_tell(&pair, "EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0"), REDIS_REPLY_INTEGER);
	redis_pair_tell(&pair, "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db 00 e0e1f9fabfc9d4800c877a703b823ac0578ff8dc");
	redis_pair_tell(&pair, "SCRIPT FLUSH");
	ck_assert_int_eq(redis_pair_tell(&pair, words), REDIS_REPLY_ERROR);
	ck_assert_int_eq(redis_pair_command(&pair, (struct span[]){SPAN("SCRIPT"), SPAN("LOAD"), SPAN("return 1")}, 3),
			 REDIS_REPLY_STRING);
	ck_assert_int_eq(redis_pair_tell(&pair, words), REDIS_REPLY_INTEGER);
	ck_assert_int_eq(redis_pair_command(&pair, (struct span[]){SPAN("SCRIPT"), SPAN("LOAD"), SPAN("retrun 1")}, 3),
			 REDIS_REPLY_ERROR);
	redis_pair_tell(&pair, "EVALSHA short 0");
	redis_pair_tell(&pair, "EVALSHA short x");
	redis_pair_eval(&pair, "return 1", "-1");
	redis_pair_eval(&pair, "return 1", "1");
	redis_pair_eval(&pair, "return 1", "x");
	redis_pair_eval(&pair, "return 1", "");
}

TEST(a_script_is_one_moment)
{
	static const char *const scripts[] = {
		"redis.call('SET', 'x', 'y', 'PX', 1) return redis.call('PTTL', 'x')",
		"redis.call('PEXPIREAT', KEYS[1], 1700000000123) return redis.call('EXISTS', KEYS[1])",
		"redis.call('SET', 'x', 'y', 'PXAT', 1700000000123) return {redis.call('GET', 'x'), redis.call('PTTL', 'x')}",
		"redis.call('SET', 'x', 'y', 'PXAT', 1700000000122) return {redis.call('GET', 'x'), redis.call('PTTL', 'x')}",
	};

	AGREE(scripts);
}

static int64_t published(void *context, struct span channel, struct span message)
{
	buf_printf(context, "%.*s: %.*s", (int)channel.n, channel.p, (int)message.n, message.p);
	return 3;
}

TEST(a_published_message_reaches_the_listener)
{
	const struct span word[] = {SPAN("PUBLISH"), SPAN("channel"), SPAN("text")};
	struct buf heard = {0}, out = {0};
	struct redis redis;

	redis_init(&redis);
	redis.model.published = published;
	redis.model.listener = &heard;
	redis_command(&redis, NOW, word, 3, &out);
	ck_assert(span_equal((struct span){buf_begin(&out), buf_length(&out)}, SPAN(":3\r\n")));
	ck_assert(span_equal((struct span){buf_begin(&heard), buf_length(&heard)}, SPAN("channel: text")));
	redis_release(&redis);
	buf_release(&heard);
	buf_release(&out);
}

static void model_fail(const char *error)
{
	free(pair.redis.model.error);
	pair.redis.model.error = error ? mem_copy(error, strlen(error)) : NULL;
}

/* What is refused, and from where on it is not. */
static void writes_agree(void)
{
	static const char *const scripts[] = {
		"return redis.call('GET', KEYS[1])",
		"return redis.call('SET', 'x', 'y')",
		"return redis.pcall('SET', 'x', 'y')",
		"return redis.call('DEL', 'none')",
		"return {redis.pcall('DEL', 'none'), redis.pcall('SET', 'x', 'y')}",
		"return {redis.pcall('SET', 'x', 'y'), redis.pcall('DEL', 'none'), redis.pcall('SET', 'x', 'y')}",
		"return {redis.pcall('PEXPIRE', KEYS[1], 100000), redis.pcall('HSET', 'h', 'f', 'v')}",
		"return redis.pcall('PUBLISH', 'channel', 'text')",
	};
	size_t i;

	for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		redis_pair_eval(&pair, scripts[i], "1 text");
	redis_pair_tell(&pair, "SET x y");
	redis_pair_tell(&pair, "DEL none");
	redis_pair_tell(&pair, "GET text");
}

static void redis_told(const char *words)
{
	redisReply *reply = clocked_redis_tell(&pair.real, words);

	ck_assert_msg(reply->type == REDIS_REPLY_STATUS, "%s: %s", words, reply->str);
	freeReplyObject(reply);
}

TEST(writes_are_refused_where_redis_refuses_them)
{
	redis_pair_reset(&pair);
	redis_pair_tell(&pair, "SET text some");
	redis_told("CONFIG SET maxmemory 1");
	model_fail("OOM command not allowed when used memory > 'maxmemory'.");
	writes_agree();
	redis_told("CONFIG SET maxmemory 0");
	redis_told("CONFIG SET min-replicas-to-write 1");
	model_fail("NOREPLICAS Not enough good replicas to write.");
	writes_agree();
	redis_told("CONFIG SET min-replicas-to-write 0");
	model_fail(NULL);
	redis_told("REPLICAOF 127.0.0.1 1");
	strcpy(pair.redis.model.role, "slave");
	writes_agree();
	redis_told("REPLICAOF NO ONE");
	strcpy(pair.redis.model.role, "master");
	writes_agree();
}
