/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/redis/lua/jobs.lua on a real Redis, daemon/store/jobs.c, and the script on a simulated node get the same random operations at the same moments, and
 * give the same answers. Then what the script promises, operation by operation. REDLOCKD_SEED=n repeats it.
 */
#include "daemon/base/netstring.h"
#include "tests/fixture/random_calls.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define TRIALS 12
#define STEPS  1200

static struct clocked_redis real;
static struct random_calls t;
static char said[300000];
static struct answer last; /* its text is in `said` */
static unsigned seen[128];

static void suite_start(void)
{
	clocked_redis_start(&real, EPOCH_US);
}

static void suite_stop(void)
{
	clocked_redis_stop(&real);
}

static void answer_keep(void *context, const struct answer *redis)
{
	(void)context;
	last = *redis;
	ck_assert_uint_lt(redis->found.n, sizeof(said));
	memcpy(said, redis->found.n ? redis->found.p : "", redis->found.n);
	said[redis->found.n] = 0;
	last.found.p = said;
}

static void reply_await(void)
{
	char bytes[16384];
	ssize_t n;

	do {
		n = read(real.redis->fd, bytes, sizeof(bytes));
		ck_assert_int_gt(n, 0);
		ck_assert_int_eq(resp_feed(&t.resp, bytes, (size_t)n), 0);
	} while (resp_next(&t.resp) == 0);
}

static void same(const char *who, const struct call *c, const struct answer *a)
{
	if (a->class == last.class && a->code == last.code && span_equal(a->found, last.found))
		return;
	ck_abort_msg("seed %llu: %.*s of %.*s\n%s: %c %.*s\nredis: %c %.*s", (unsigned long long)t.seed, (int)c->value.n, c->value.p, (int)c->name.n,
	             c->name.p, who, a->code ? a->code : '-', (int)a->found.n, a->found.p, last.code ? last.code : '-', (int)last.found.n, said);
}

/* One operation, at all three. */
static char run(struct span queue, const struct buf *words)
{
	const struct script_sink sink = {NULL, answer_keep};
	struct call c = {.id = 1, .kind = CALL_HOME, .name = queue, .value = {buf_begin(words), buf_length(words)}, .marker = SPAN(""), .ticket = SPAN("n0")};
	struct answer a;
	struct buf out = {0};

	batch_reset(&t.batch);
	batch_add(&t.batch, &t.keys, &c, 0);
	ck_assert_int_eq(t.batch.script, SCRIPT_JOBS);
	batch_write(&t.batch, &t.keys, NULL, script_text[t.batch.script], &out);
	ck_assert_int_eq(write(real.redis->fd, buf_begin(&out), buf_length(&out)), (ssize_t)buf_length(&out));
	buf_release(&out);
	reply_await();
	ck_assert_int_eq(script_answer(&t.batch, &t.resp, 0, &sink), 0);
	ck_assert_msg(last.class == ANSWER_EXECUTED, "%.*s", (int)last.text.n, last.text.p);
	memory_call(t.memory, &c, t.now, &a);
	same("memory", &c, &a);
	sim_node_call(t.node, &c, 1, random_clock(&t), &a);
	same("model", &c, &a);
	seen[(unsigned char)last.code]++;
	return last.code;
}

static void pass_ms(int64_t ms)
{
	t.now.us += ms * 1000;
	*t.redis->frozen_us = random_clock(&t);
}

/* An operation with its arguments as text, each behind a blank; "-" is an empty one. A defer without a nonce gets one of its own. Returns the code. */
static char __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
	static int64_t nonces;
	char text[1024];
	struct buf words = {0};
	struct span rest, word;
	unsigned n;
	va_list list;
	char code;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	rest = span_of(text);
	netstring_put(&words, SPAN("j"));
	for (n = 0; span_word(&rest, &word); n++)
		netstring_put(&words, span_equal(word, SPAN("-")) ? SPAN("") : word);
	if (n == 6 && span_starts(span_of(text), SPAN("defer "))) {
		netstring_put_int(&words, ++nonces);
		netstring_put(&words, SPAN("0"));
	}
	code = run(SPAN("mail"), &words);
	buf_release(&words);
	return code;
}

/* The text of the last answer, with blanks between the words. */
static const char *told(void)
{
	static char out[4096];
	struct span rest = last.found, word;
	size_t n = 0;

	while (netstring_next(&rest, &word))
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s", n > 0 ? " " : "", (int)word.n, word.p);
	out[n] = 0;
	return out;
}

static void begin(uint64_t seed)
{
	random_begin(&t, &real, seed);
}

static void end(void)
{
	random_end(&t);
}

/* --- random operations --- */

static const struct span queues[] = {{"mail", 4}, {"two words", 9}, {"\0:\n", 3}};

static void put_pick(struct buf *words, const char *prefix, unsigned most)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%u", prefix, (unsigned)rng_below(&t.rng, most));
	netstring_put(words, span_of(text));
}

static void put_number(struct buf *words, int64_t most)
{
	netstring_put_int(words, (int64_t)rng_below(&t.rng, (uint64_t)most));
}

static void defer_draw(struct buf *words)
{
	netstring_put(words, SPAN("defer"));
	put_pick(words, "id", 12);
	netstring_put(words, random_chance(&t, 50) ? SPAN("a \0 payload") : SPAN(""));
	if (random_chance(&t, 60))
		put_pick(words, "lock", 3);
	else
		netstring_put(words, SPAN(""));
	put_number(words, random_chance(&t, 50) ? 1 : 200);
	netstring_put_int(words, random_chance(&t, 90) ? 10 : 3);
	put_pick(words, "nonce", random_chance(&t, 30) ? 20 : 1000000);
	netstring_put_int(words, random_chance(&t, 30) ? 0 : random_clock(&t) / 1000 + (int64_t)rng_below(&t.rng, 400) - 20);
}

static void take_draw(struct buf *words)
{
	netstring_put(words, SPAN("take"));
	put_pick(words, "v", 1000000);
	netstring_put_int(words, random_chance(&t, 50) ? 50 : 3000);
	netstring_put_int(words, 3);
	netstring_put_int(words, random_chance(&t, 95) ? 0 : random_clock(&t) / 1000 - 1);
	put_pick(words, "d", 3);
	netstring_put_int(words, random_chance(&t, 50) ? 0 : 3000);
	put_number(words, 2);
	netstring_put_int(words, random_chance(&t, 70) ? 0 : random_clock(&t) / 1000 - (int64_t)rng_below(&t.rng, 300));
	if (random_chance(&t, 70))
		netstring_put(words, SPAN(""));
	else
		put_pick(words, "id", 12);
	for (unsigned n = (unsigned)rng_below(&t.rng, 3); n > 0; n--)
		put_pick(words, "lock", 3);
}

/* Of the last lease, mostly. */
static void value_put(struct buf *words, const char *value)
{
	netstring_put(words, random_chance(&t, 80) ? span_of(value) : SPAN("v0"));
}

static void lease_draw(struct buf *words, const char *value)
{
	switch (rng_below(&t.rng, 5)) {
	case 0:
		netstring_put(words, SPAN("renew"));
		value_put(words, value);
		netstring_put(words, span_of(value)); /* no two jobs ever have the same */
		put_number(words, 4000);
		if (random_chance(&t, 30))
			value_put(words, value);
		break;
	case 1:
		netstring_put(words, SPAN("done"));
		value_put(words, value);
		break;
	case 2:
		netstring_put(words, SPAN("retry"));
		value_put(words, value);
		put_number(words, 100);
		netstring_put_int(words, 3);
		break;
	case 3:
		netstring_put(words, SPAN("back"));
		value_put(words, value);
		put_number(words, 2);
		break;
	default:
		netstring_put(words, SPAN("revive"));
		put_pick(words, "id", 12);
		put_number(words, 50);
		break;
	}
}

static void other_draw(struct buf *words)
{
	switch (rng_below(&t.rng, 3)) {
	case 0:
		netstring_put(words, SPAN("list"));
		put_number(words, random_chance(&t, 50) ? 1 : 12);
		break;
	case 1:
		netstring_put(words, SPAN("queues"));
		put_number(words, 2);
		break;
	default:
		netstring_put(words, SPAN("leave"));
		put_pick(words, "d", 3);
		break;
	}
}

START_TEST(memory_and_model_answer_what_the_script_on_a_real_redis_does)
{
	uint64_t seed = seed_pick("jobs");

	for (unsigned i = 0; i < TRIALS; i++) {
		char value[64] = "v0";

		begin(seed + i);
		for (unsigned k = 0; k < STEPS; k++) {
			struct buf words = {0};
			struct span rest, word;
			unsigned what = (unsigned)rng_below(&t.rng, 100);

			if (random_chance(&t, 30))
				pass_ms((int64_t)rng_below(&t.rng, 40));
			netstring_put(&words, SPAN("j"));
			if (what < 35)
				defer_draw(&words);
			else if (what < 65)
				take_draw(&words);
			else if (what < 90)
				lease_draw(&words, value);
			else
				other_draw(&words);
			rest = (struct span){buf_begin(&words), buf_length(&words)};
			if (run(queues[rng_below(&t.rng, 3)], &words) == 'J') {
				for (unsigned w = 0; w < 3; w++)
					ck_assert(netstring_next(&rest, &word));
				snprintf(value, sizeof(value), "%.*s", (int)word.n, word.p);
			}
			buf_release(&words);
		}
		end();
	}
	for (const char *c = "DFJWLKRMT"; *c; c++)
		ck_assert_msg(seen[(unsigned char)*c] > 0, "no operation was answered %c", *c);
}
END_TEST

/* --- what is promised --- */

static void cases_start(void)
{
	begin(1);
}

#define TAKE(value) "take " value " 1000 3 0 d1 0 0 0 -"

START_TEST(a_job_is_taken_when_it_is_due_and_in_that_order)
{
	ck_assert_int_eq(say("defer late x - 100 10"), 'D');
	ck_assert_str_eq(told(), "100");
	ck_assert_int_eq(say("defer second x - 50 10"), 'D');
	ck_assert_int_eq(say("defer first x - 0 10"), 'D');
	ck_assert_int_eq(say(TAKE("v1")), 'J');
	ck_assert_str_eq(told(), "first 1  x 1700000000000");
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	ck_assert_str_eq(told(), "50");
	pass_ms(200);
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_str_eq(told(), "second 1  x 1700000000050");
	ck_assert_int_eq(say(TAKE("v3")), 'J');
	ck_assert_str_eq(told(), "late 1  x 1700000000100");
}
END_TEST

START_TEST(the_same_id_is_the_same_job_while_it_is_due_or_leased)
{
	say("defer a x - 0 10");
	ck_assert_int_eq(say("defer a other - 70 10"), 'D');
	ck_assert_str_eq(told(), "0");
	ck_assert_int_eq(say(TAKE("v1")), 'J');
	ck_assert_int_eq(say("defer a other - 70 10"), 'D');
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	ck_assert_int_eq(say("done v1"), 'R');
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	ck_assert_int_eq(say("defer a other - 0 10"), 'D');
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_str_eq(told(), "a 1  other 1700000000000");
}
END_TEST

START_TEST(a_lease_that_is_over_counts_as_a_failed_attempt_and_its_value_is_dead)
{
	say("defer a x - 0 10");
	say(TAKE("v1"));
	pass_ms(999);
	ck_assert_int_eq(say("renew v1 v1 1000"), 'K');
	pass_ms(1000);
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_str_eq(told(), "a 2  x 1700000001999");
	ck_assert_int_eq(say("renew v1 v1 1000"), 'M');
	ck_assert_int_eq(say("done v1"), 'M');
	ck_assert_int_eq(say("retry v1 0 3"), 'M');
	ck_assert_int_eq(say("back v1 0"), 'M');
	ck_assert_int_eq(say("done v2"), 'R');
}
END_TEST

START_TEST(a_lease_that_was_not_swept_up_yet_may_be_renewed_and_done)
{
	say("defer a x - 0 10");
	say(TAKE("v1"));
	pass_ms(5000);
	ck_assert_int_eq(say("renew v1 v1 1000"), 'K');
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	ck_assert_int_eq(say("done v1"), 'R');
}
END_TEST

START_TEST(a_job_that_fails_too_often_is_dead_until_somebody_revives_it)
{
	say("defer a x - 0 10");
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(say(TAKE("v1")), 'J');
		ck_assert_int_eq(say("retry v1 0 3"), 'R');
	}
	ck_assert_int_eq(say(TAKE("v1")), 'J');
	ck_assert_str_eq(told(), "a 3  x 1700000000000");
	pass_ms(1000);
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	pass_ms(10);
	say("list 0");
	ck_assert_str_eq(told(), "-1 a dead 10 3  x");
	ck_assert_int_eq(say("revive b 0"), 'M');
	ck_assert_int_eq(say("revive a 0"), 'R');
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_str_eq(told(), "a 1  x 1700000001010");
}
END_TEST

START_TEST(a_job_that_is_given_back_has_its_place_and_its_attempts)
{
	say("defer a x lock 0 10");
	say("defer b x - 1 10");
	pass_ms(10);
	ck_assert_int_eq(say(TAKE("v1")), 'J');
	ck_assert_int_eq(say("back v1 0"), 'R');
	ck_assert_int_eq(say(TAKE("v2") " lock"), 'J');
	ck_assert_str_eq(told(), "b 1  x 1700000000001");
	ck_assert_int_eq(say(TAKE("v3")), 'J');
	ck_assert_str_eq(told(), "a 1 lock x 1700000000000");
}
END_TEST

START_TEST(only_so_many_jobs_are_kept_and_a_dead_one_counts)
{
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(say("defer id%u x - 0 3", i), 'D');
	ck_assert_int_eq(say("defer id3 x - 0 3"), 'F');
	ck_assert_str_eq(told(), "3");
	ck_assert_int_eq(say("defer id2 x - 0 3"), 'D');
	say("take v1 1000 1 0 d1 0 0 0 -");
	say("retry v1 0 1");
	ck_assert_int_eq(say("defer id3 x - 0 3"), 'F');
	ck_assert_int_eq(say("defer id0 y - 0 3"), 'D');
}
END_TEST

START_TEST(a_take_looks_at_a_bounded_number_of_jobs_and_goes_on_behind_them)
{
	for (unsigned i = 0; i < 200; i++)
		say("defer id%03u x held 0 1000", i);
	say("defer zlast x - 0 1000");
	ck_assert_int_eq(say(TAKE("v1") " held"), 'C');
	ck_assert_str_eq(told(), "1700000000000 id127");
	ck_assert_int_eq(say("take v1 1000 3 0 d1 0 0 1700000000000 id127 held"), 'J');
	ck_assert_str_eq(told(), "zlast 1  x 1700000000000");
	say("queues 0");
	ck_assert_str_eq(told(), "-1 mail 200 1 0 1000");
}
END_TEST

START_TEST(a_defer_that_was_carried_out_changes_nothing_any_more)
{
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	pass_ms(40);
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	ck_assert_str_eq(told(), "60");
	ck_assert_int_eq(say("defer a x - 0 10 other 1700000001000"), 'D');
	pass_ms(60);
	ck_assert_int_eq(say("take v1 1000 1 0 d1 0 0 0 -"), 'J');
	ck_assert_int_eq(say("retry v1 0 1"), 'R');
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	ck_assert_int_eq(say("revive a 0"), 'R');
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_int_eq(say("done v2"), 'R');
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	ck_assert_str_eq(told(), "0");
	ck_assert_int_eq(say("defer a x - 0 10 other 1700000001000"), 'D');
	ck_assert_int_eq(say(TAKE("v3")), 'W');
	pass_ms(901);
	ck_assert_int_eq(say("defer a x - 0 10 nonce 1700000001000"), 'L');
	ck_assert_int_eq(say(TAKE("v3")), 'W');
	ck_assert_int_eq(say("defer a x - 0 10 third 1700000002000"), 'D');
	ck_assert_int_eq(say(TAKE("v3")), 'J');
}
END_TEST

START_TEST(a_late_take_takes_nothing)
{
	say("defer a x - 0 10");
	pass_ms(10);
	ck_assert_int_eq(say("take v1 1000 3 1700000000009 d1 0 0 0 -"), 'L');
	ck_assert_int_eq(say("take v1 1000 3 1700000000010 d1 0 0 0 -"), 'J');
}
END_TEST

START_TEST(the_last_job_done_leaves_no_key_behind_but_what_ends_by_itself)
{
	redisReply *keys;

	say("defer a x - 0 10");
	say(TAKE("v1"));
	say("done v1");
	pass_ms(15001);
	keys = clocked_redis_tell(&real, "KEYS redlockd:*");
	ck_assert_uint_eq(keys->elements, 1); /* the name of the store */
	freeReplyObject(keys);
}
END_TEST

Suite *jobs_suite(void)
{
	Suite *s = suite_create("jobs");
	TCase *c = tcase_create("memory, model and redis"), *k = tcase_create("promises");

	tcase_set_timeout(c, 120);
	tcase_add_unchecked_fixture(c, suite_start, suite_stop);
	tcase_add_test(c, memory_and_model_answer_what_the_script_on_a_real_redis_does);
	suite_add_tcase(s, c);
	tcase_set_timeout(k, 60);
	tcase_add_unchecked_fixture(k, suite_start, suite_stop);
	tcase_add_checked_fixture(k, cases_start, end);
	tcase_add_test(k, a_job_is_taken_when_it_is_due_and_in_that_order);
	tcase_add_test(k, the_same_id_is_the_same_job_while_it_is_due_or_leased);
	tcase_add_test(k, a_lease_that_is_over_counts_as_a_failed_attempt_and_its_value_is_dead);
	tcase_add_test(k, a_lease_that_was_not_swept_up_yet_may_be_renewed_and_done);
	tcase_add_test(k, a_job_that_fails_too_often_is_dead_until_somebody_revives_it);
	tcase_add_test(k, a_job_that_is_given_back_has_its_place_and_its_attempts);
	tcase_add_test(k, only_so_many_jobs_are_kept_and_a_dead_one_counts);
	tcase_add_test(k, a_take_looks_at_a_bounded_number_of_jobs_and_goes_on_behind_them);
	tcase_add_test(k, a_late_take_takes_nothing);
	tcase_add_test(k, a_defer_that_was_carried_out_changes_nothing_any_more);
	tcase_add_test(k, the_last_job_done_leaves_no_key_behind_but_what_ends_by_itself);
	suite_add_tcase(s, k);
	return s;
}
