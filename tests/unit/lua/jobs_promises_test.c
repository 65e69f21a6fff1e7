/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/lua/jobs.lua, daemon/store/jobs.c: what is promised of jobs, operation by operation. */
#include "tests/fixture/jobs_alike.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>

#define KEEP_MS "604800000"

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
		n += 2;
	}
	if (n == 8 && span_starts(span_of(text), SPAN("defer "))) { /* of the peer p, without bounds */
		netstring_put(&words, SPAN("p"));
		netstring_put(&words, SPAN("1000000000"));
		netstring_put(&words, SPAN("0"));
		netstring_put(&words, SPAN(KEEP_MS));
	}
	code = alike_run(SPAN("mail"), &words);
	buf_release(&words);
	return code;
}

/* The text of the last answer, with blanks between the words. */
static const char *told(void)
{
	static char out[4096];
	struct span rest = alike.last.found, word;
	size_t n = 0;

	while (netstring_next(&rest, &word))
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s", n > 0 ? " " : "", (int)word.n, word.p);
	out[n] = 0;
	return out;
}

static void begin(void)
{
	random_begin(&alike.calls, &alike.real, 1);
}

static void end(void)
{
	random_end(&alike.calls);
}

#define TAKE(value) "take " value " 1000 3 0 d1 0 0 0 - " KEEP_MS

FIXTURE(.before_all = alike_start, .after_all = alike_stop, .setup = begin, .teardown = end, .seconds = 60)

TEST(a_job_is_taken_when_it_is_due_and_in_that_order)
{
	ck_assert_int_eq(say("defer late x - 100 10"), 'D');
	ck_assert_str_eq(told(), "100");
	ck_assert_int_eq(say("defer second x - 50 10"), 'D');
	ck_assert_int_eq(say("defer first x - 0 10"), 'D');
	ck_assert_int_eq(say(TAKE("v1")), 'J');
	ck_assert_str_eq(told(), "first 1  x 1700000000000");
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	ck_assert_str_eq(told(), "50");
	alike_pass_ms(200);
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_str_eq(told(), "second 1  x 1700000000050");
	ck_assert_int_eq(say(TAKE("v3")), 'J');
	ck_assert_str_eq(told(), "late 1  x 1700000000100");
}

TEST(the_same_id_is_the_same_job_while_it_is_due_or_leased)
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

TEST(a_lease_that_is_over_counts_as_a_failed_attempt_and_its_value_is_dead)
{
	say("defer a x - 0 10");
	say(TAKE("v1"));
	alike_pass_ms(999);
	ck_assert_int_eq(say("renew v1 1000"), 'K');
	alike_pass_ms(1000);
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_str_eq(told(), "a 2  x 1700000001999");
	ck_assert_int_eq(say("renew v1 1000"), 'M');
	ck_assert_int_eq(say("done v1"), 'M');
	ck_assert_int_eq(say("retry v1 0 3"), 'M');
	ck_assert_int_eq(say("back v1 0"), 'M');
	ck_assert_int_eq(say("done v2"), 'R');
}

TEST(a_lease_that_was_not_swept_up_yet_may_be_renewed_and_done)
{
	say("defer a x - 0 10");
	say(TAKE("v1"));
	alike_pass_ms(5000);
	ck_assert_int_eq(say("renew v1 1000"), 'K');
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	ck_assert_int_eq(say("done v1"), 'R');
}

TEST(a_job_that_fails_too_often_is_dead_until_somebody_revives_it)
{
	say("defer a x - 0 10");
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(say(TAKE("v1")), 'J');
		ck_assert_int_eq(say("retry v1 0 3"), 'R');
	}
	ck_assert_int_eq(say(TAKE("v1")), 'J');
	ck_assert_str_eq(told(), "a 3  x 1700000000000");
	alike_pass_ms(1000);
	ck_assert_int_eq(say(TAKE("v2")), 'W');
	alike_pass_ms(10);
	say("list 0 " KEEP_MS);
	ck_assert_str_eq(told(), "-1 a dead 10 3  x");
	ck_assert_int_eq(say("revive b 0"), 'M');
	ck_assert_int_eq(say("revive a 0"), 'R');
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_str_eq(told(), "a 1  x 1700000001010");
}

TEST(a_job_that_is_given_back_has_its_place_and_its_attempts)
{
	say("defer a x lock 0 10");
	say("defer b x - 1 10");
	alike_pass_ms(10);
	ck_assert_int_eq(say(TAKE("v1")), 'J');
	ck_assert_int_eq(say("back v1 0"), 'R');
	ck_assert_int_eq(say(TAKE("v2") " lock"), 'J');
	ck_assert_str_eq(told(), "b 1  x 1700000000001");
	ck_assert_int_eq(say(TAKE("v3")), 'J');
	ck_assert_str_eq(told(), "a 1 lock x 1700000000000");
}

TEST(only_so_many_jobs_are_kept_and_a_dead_one_counts)
{
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(say("defer id%u x - 0 3", i), 'D');
	ck_assert_int_eq(say("defer id3 x - 0 3"), 'F');
	ck_assert_str_eq(told(), "3");
	ck_assert_int_eq(say("defer id2 x - 0 3"), 'D');
	say("take v1 1000 1 0 d1 0 0 0 - " KEEP_MS);
	say("retry v1 0 1");
	ck_assert_int_eq(say("defer id3 x - 0 3"), 'F');
	ck_assert_int_eq(say("defer id0 y - 0 3"), 'D');
}

TEST(a_take_looks_at_a_bounded_number_of_jobs_and_goes_on_behind_them)
{
	for (unsigned i = 0; i < 200; i++)
		say("defer id%03u x held 0 1000", i);
	say("defer zlast x - 0 1000");
	ck_assert_int_eq(say(TAKE("v1") " held"), 'C');
	ck_assert_str_eq(told(), "1700000000000 id127");
	ck_assert_int_eq(say("take v1 1000 3 0 d1 0 0 1700000000000 id127 " KEEP_MS " held"), 'J');
	ck_assert_str_eq(told(), "zlast 1  x 1700000000000");
	say("queues 0");
	ck_assert_str_eq(told(), "-1 mail 200 1 0 1000");
}

TEST(a_defer_that_was_carried_out_changes_nothing_any_more)
{
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	alike_pass_ms(40);
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	ck_assert_str_eq(told(), "60");
	ck_assert_int_eq(say("defer a x - 0 10 other 1700000001000"), 'D');
	alike_pass_ms(60);
	ck_assert_int_eq(say("take v1 1000 1 0 d1 0 0 0 - " KEEP_MS), 'J');
	ck_assert_int_eq(say("retry v1 0 1"), 'R');
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	ck_assert_int_eq(say("revive a 0"), 'R');
	ck_assert_int_eq(say(TAKE("v2")), 'J');
	ck_assert_int_eq(say("done v2"), 'R');
	ck_assert_int_eq(say("defer a x - 100 10 nonce 1700000001000"), 'D');
	ck_assert_str_eq(told(), "0");
	ck_assert_int_eq(say("defer a x - 0 10 other 1700000001000"), 'D');
	ck_assert_int_eq(say(TAKE("v3")), 'W');
	alike_pass_ms(901);
	ck_assert_int_eq(say("defer a x - 0 10 nonce 1700000001000"), 'L');
	ck_assert_int_eq(say(TAKE("v3")), 'W');
	ck_assert_int_eq(say("defer a x - 0 10 third 1700000002000"), 'D');
	ck_assert_int_eq(say(TAKE("v3")), 'J');
}

/* Whatever the ids of the clients are. */
TEST(jobs_that_are_due_in_the_same_moment_come_in_the_order_in_which_they_came)
{
	static const char *const id[] = {"m", "z", "a", "0", "\xff"};

	for (unsigned i = 0; i < 5; i++)
		say("defer %s x - %u 10", id[i], 50);
	alike_pass_ms(50);
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(say("take v%u 1000 3 0 d1 0 0 0 - " KEEP_MS, i), 'J');
		ck_assert_msg(span_starts(span_of(told()), span_of(id[i])), "%s in place of %s", told(), id[i]);
	}
	ck_assert_int_eq(say("back v3 0"), 'R');
	ck_assert_int_eq(say("back v1 0"), 'R');
	ck_assert_int_eq(say(TAKE("w1")), 'J');
	ck_assert(span_starts(span_of(told()), SPAN("z ")));
}

#define FOR(peer, all, of_peer) " one%u 0 " peer " " all " " of_peer " " KEEP_MS

TEST(jobs_take_no_more_bytes_than_all_and_one_peer_may)
{
	unsigned n = 0;

	while (say("defer id%u x - 0 1000" FOR("p", "10000", "0"), n, n) == 'D')
		n++;
	ck_assert_uint_gt(n, 10);
	ck_assert_int_eq(say("defer z x - 0 1000" FOR("q", "10000", "5000"), 1001), 'B');
	ck_assert_str_eq(told(), "*");
	ck_assert_int_eq(say("defer z x - 0 1000" FOR("p", "20000", "5000"), 1002), 'B');
	ck_assert_str_eq(told(), "p");
	ck_assert_int_eq(say("defer z x - 0 1000" FOR("q", "20000", "5000"), 1003), 'D');
	ck_assert_int_eq(say("drop id0"), 'R');
	ck_assert_int_eq(say(TAKE("v")), 'J');
	ck_assert_int_eq(say("done v"), 'R');
	ck_assert_int_eq(say("defer y x - 0 1000" FOR("p", "10700", "0"), 1004), 'D');
}

TEST(a_job_that_is_due_or_delayed_or_has_failed_for_good_may_be_dropped)
{
	redisReply *keys;

	say("defer due x - 0 10");
	say("defer late x - 500 10");
	say("defer dead x - 0 10");
	ck_assert_int_eq(say("drop nobody"), 'M');
	ck_assert_int_eq(say(TAKE("v")), 'J');
	ck_assert_int_eq(say("drop due"), 'H');
	ck_assert_int_eq(say("back v 0"), 'R');
	ck_assert_int_eq(say("drop due"), 'R');
	ck_assert_int_eq(say("drop due"), 'M');
	ck_assert_int_eq(say(TAKE("v")), 'J');
	ck_assert_int_eq(say("retry v 0 1"), 'R');
	ck_assert_str_eq(told(), "dead");
	ck_assert_int_eq(say("drop dead"), 'R');
	ck_assert_int_eq(say("drop late"), 'R');
	say("queues 0");
	ck_assert_str_eq(told(), "-1");
	alike_pass_ms(15001);
	say("take v 1000 3 0 d1 0 0 0 - " KEEP_MS);
	keys = clocked_redis_tell(&alike.real, "KEYS redlockd:*");
	ck_assert_uint_eq(keys->elements, 1); /* the name of the store */
	freeReplyObject(keys);
}

TEST(a_delayed_job_that_is_retried_is_due_at_once_and_keeps_its_attempts)
{
	say("defer a x - 500 10");
	ck_assert_int_eq(say(TAKE("v")), 'W');
	ck_assert_int_eq(say("revive a 0"), 'R');
	ck_assert_int_eq(say(TAKE("v")), 'J');
	ck_assert_int_eq(say("revive a 0"), 'M');
	ck_assert_int_eq(say("retry v 500 3"), 'R');
	ck_assert_str_eq(told(), "");
	ck_assert_int_eq(say("revive a 20"), 'R');
	alike_pass_ms(20);
	ck_assert_int_eq(say("revive a 0"), 'R');
	ck_assert_int_eq(say(TAKE("v")), 'J');
	ck_assert_str_eq(told(), "a 2  x 1700000000020");
}

TEST(a_job_that_has_failed_for_good_is_kept_for_so_long_and_then_it_is_gone)
{
	say("defer a x - 0 10");
	say("defer b x - 0 10");
	ck_assert_int_eq(say(TAKE("v")), 'J');
	ck_assert_int_eq(say("retry v 0 1"), 'R');
	alike_pass_ms(500);
	ck_assert_int_eq(say("take v 1 1 0 d1 0 0 0 - 1000"), 'J');
	alike_pass_ms(100);
	ck_assert_int_eq(say("take w 1000 1 0 d1 0 0 0 - 1000"), 'W');
	ck_assert_str_eq(told(), "-1 b");
	alike_pass_ms(399);
	say("list 0 1000");
	ck_assert_str_eq(told(), "-1 a dead 999 1  x b dead 399 1  x");
	alike_pass_ms(1);
	say("list 0 1000");
	ck_assert_str_eq(told(), "-1 b dead 400 1  x");
	alike_pass_ms(10000);
	ck_assert_int_eq(say("defer c x - 0 1 n 0 p 3000 0 1000"), 'D');
	say("list 0 1000");
	ck_assert_str_eq(told(), "-1 c due 0 0  x");
}

TEST(a_late_take_takes_nothing)
{
	say("defer a x - 0 10");
	alike_pass_ms(10);
	ck_assert_int_eq(say("take v1 1000 3 1700000000009 d1 0 0 0 - " KEEP_MS), 'L');
	ck_assert_int_eq(say("take v1 1000 3 1700000000010 d1 0 0 0 - " KEEP_MS), 'J');
}

TEST(the_last_job_done_leaves_no_key_behind_but_what_ends_by_itself)
{
	redisReply *keys;

	say("defer a x - 0 10");
	say(TAKE("v1"));
	say("done v1");
	alike_pass_ms(15001);
	keys = clocked_redis_tell(&alike.real, "KEYS redlockd:*");
	ck_assert_uint_eq(keys->elements, 1); /* the name of the store */
	freeReplyObject(keys);
}
