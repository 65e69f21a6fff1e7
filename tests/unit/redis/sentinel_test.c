/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/sentinel.c: three servers that answer as sentinels do, or do not. */
#include "daemon/redis/sentinel.h"
#include "daemon/base/clock.h"
#include "daemon/base/instant.h"
#include "tests/fixture/fake_redis.h"
#include "tests/fixture/resolver_loop.h"

#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define SENTINELS 3
#define AT_7000   "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n7000\r\n"
#define AT_7001   "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n7001\r\n"
#define UNKNOWN   "*-1\r\n"
#define LATE_US   (300 * MSEC)
#define POLL_US   (30 * MSEC)

static struct fake_redis fake[SENTINELS];
static struct upstream_host at[SENTINELS];
static struct sentinel_conf conf;
static struct sentinel *sentinel;
static unsigned answered, moved, heard;
static char host[256], reason[512], trouble[512];
static uint16_t port;
static enum defect defect, trouble_defect;

static void on_told(void *context, const char *to_host, uint16_t to_port, enum defect why_defect, const char *why)
{
	(void)context;
	answered++;
	(void)snprintf(host, sizeof(host), "%s", to_host ? to_host : "");
	port = to_port;
	defect = why_defect;
	(void)snprintf(reason, sizeof(reason), "%s", why);
}

static void on_moved(void *context, const char *to, uint16_t to_port)
{
	(void)context;
	moved++;
	(void)snprintf(reason, sizeof(reason), "%s:%u", to, to_port);
}

static void on_heard(void *context, enum defect why_defect, const char *why)
{
	(void)context;
	heard++;
	trouble_defect = why_defect;
	(void)snprintf(trouble, sizeof(trouble), "%s", why);
}

static void sentinel_make(void)
{
	static const struct sentinel_sink sink = {.located = on_told, .moved = on_moved, .trouble = on_heard};
	const struct upstream_address address = {.label = "sentinel:locks", .master = "locks", .sentinel = at, .sentinels = SENTINELS};

	sentinel_free(sentinel);
	sentinel = sentinel_new(&conf, &address, &sink);
}

static void setup(void)
{
	resolver_loop_open();
	for (unsigned i = 0; i < SENTINELS; i++) {
		fake_redis_start(&fake[i], resolver_loop.base, true);
		fake[i].where = AT_7000;
		at[i] = (struct upstream_host){"127.0.0.1", ntohs(((struct sockaddr_in *)&fake[i].address)->sin_port)};
	}
	conf = (struct sentinel_conf){.base = resolver_loop.base, .resolver = resolver_loop.resolver, .timeout_us = 5 * SEC, .poll_us = POLL_US};
	sentinel_make();
}

static void teardown(void)
{
	sentinel_free(sentinel);
	for (unsigned i = 0; i < SENTINELS; i++)
		fake_redis_stop(&fake[i]);
	resolver_loop_close();
}

static void ask(void)
{
	unsigned before = answered;

	sentinel_ask(sentinel);
	ck_assert_uint_eq(answered, before); /* never from inside */
	resolver_loop_await(&answered, before + 1);
}

/* Nobody listens there. */
static void is_gone(unsigned i)
{
	at[i].port = 1;
	sentinel_make();
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(each_is_asked_and_the_connections_stay)
{
	char where[32];

	ask();
	resolver_loop_run(POLL_US);
	ask();
	resolver_loop_run(POLL_US);
	ck_assert_str_eq(host, "10.0.0.1");
	ck_assert_uint_eq(port, 7000);
	sentinel_where(sentinel, where, sizeof(where));
	ck_assert_str_eq(where, "10.0.0.1:7000");
	for (unsigned i = 0; i < SENTINELS; i++) {
		ck_assert_uint_eq(fake[i].connections, 1);
		ck_assert_uint_eq(fake[i].questions, 2);
	}
}

TEST(most_of_all_are_enough)
{
	is_gone(0);
	ask();
	ck_assert_uint_eq(port, 7000);
	fake_redis_hang_up(&fake[2]);
	ask();
	ck_assert_uint_eq(port, 7000);
	ck_assert_uint_eq(fake[2].connections, 2);
}

/* Most of the others may name another one to daemons that reach those. */
TEST(a_minority_tells_nothing_though_no_other_answers)
{
	char expected[512];

	is_gone(0);
	fake[1].where = UNKNOWN;
	ask();
	ck_assert_uint_eq(port, 0);
	ck_assert_int_eq(defect, DEFECT_SENTINEL);
	snprintf(expected, sizeof(expected),
	         "too few sentinels (1 of 3) tell where locks is: 127.0.0.1:1 Connection refused; 127.0.0.1:%u knows no such master", at[1].port);
	ck_assert_str_eq(reason, expected);
	fake[1].where = AT_7000;
	ask();
	ck_assert_uint_eq(port, 7000);
}

TEST(that_too_few_are_left_to_tell_a_fail_over_is_told)
{
	ask();
	sentinel_follow(sentinel, true);
	fake[1].where = UNKNOWN;
	resolver_loop_await(&heard, heard + 2);
	ck_assert_str_eq(trouble, "");
	fake[2].where = UNKNOWN;
	resolver_loop_await(&heard, heard + 2);
	ck_assert_ptr_nonnull(strstr(trouble, "too few sentinels (1 of 3) tell where locks is: 127.0.0.1:"));
	fake[2].where = AT_7000;
	resolver_loop_await(&heard, heard + 2);
	ck_assert_str_eq(trouble, "");
}

/* Whoever starts now waits, so nobody else goes there before most name it. */
TEST(a_minority_that_names_another_moves_nothing_and_is_told)
{
	static const char text[] = "the sentinels that answer name another master (10.0.0.1:7001), but they are too few (1 of 3)";

	ask();
	sentinel_follow(sentinel, true);
	fake[0].where = AT_7001;
	fake[1].where = fake[2].where = UNKNOWN;
	resolver_loop_await(&heard, heard + 3);
	ck_assert_str_eq(trouble, text);
	ck_assert_uint_eq(moved, 0);
	ask();
	ck_assert_uint_eq(port, 0);
	ck_assert_str_eq(reason, text);
	fake[2].where = AT_7001;
	sentinel_follow(sentinel, true);
	resolver_loop_await(&moved, 1);
}

TEST(those_that_hang_are_left_after_their_time)
{
	struct instant begin = clock_boottime();

	conf.timeout_us = LATE_US;
	fake[0].where = "";
	fake[1].deaf = true;
	ask();
	ck_assert_ptr_nonnull(strstr(reason, "too few sentinels (1 of 3) tell where locks is: 127.0.0.1:"));
	ck_assert_ptr_nonnull(strstr(reason, " does not answer within 300 ms; 127.0.0.1:"));
	ck_assert_int_ge(instant_diff(clock_boottime(), begin), LATE_US - 20 * MSEC);
}

TEST(a_majority_need_not_wait_for_the_rest)
{
	fake[0].where = "";
	ask();
	ck_assert_uint_eq(port, 7000);
}

TEST(most_are_believed_wherever_they_stand)
{
	fake[1].where = fake[2].where = AT_7001;
	ask();
	ck_assert_uint_eq(port, 7001);
}

TEST(one_that_missed_the_fail_over_is_not_believed_and_told)
{
	ask();
	sentinel_follow(sentinel, true);
	fake[1].where = fake[2].where = AT_7001;
	resolver_loop_await(&moved, 1);
	ck_assert_str_eq(reason, "10.0.0.1:7001");
	ask();
	ck_assert_uint_eq(port, 7001);
	sentinel_follow(sentinel, true);
	resolver_loop_await(&heard, heard + 2);
	ck_assert_uint_eq(moved, 1);
	ck_assert_msg(strstr(trouble, "the sentinels do not agree where locks is: 127.0.0.1:") && strstr(trouble, " names 10.0.0.1:7000; 127.0.0.1:") &&
	              strstr(trouble, " names 10.0.0.1:7001"), "%s", trouble);
	fake[0].where = AT_7001;
	resolver_loop_await(&heard, heard + 2);
	ck_assert_str_eq(trouble, "");
}

/* As long as no majority of those that answer names another, the master stays. */
TEST(one_against_one_moves_nothing)
{
	is_gone(2);
	ask();
	sentinel_follow(sentinel, true);
	fake[0].where = AT_7001;
	resolver_loop_await(&heard, heard + 3);
	ck_assert_uint_eq(moved, 0);
	ck_assert_msg(strstr(trouble, "the sentinels do not agree"), "%s", trouble);
}

/* The daemons that run may use either. */
TEST(one_against_one_tells_nothing_to_one_that_starts)
{
	is_gone(2);
	fake[0].where = AT_7001;
	ask();
	ck_assert_uint_eq(port, 0);
	ck_assert_int_eq(defect, DEFECT_SENTINEL);
	ck_assert_msg(strstr(reason, "the sentinels do not agree") && strstr(reason, ":7000") && strstr(reason, ":7001"), "%s", reason);
	fake[0].where = AT_7000;
	ask();
	ck_assert_uint_eq(port, 7000);
}

TEST(a_name_is_resolved)
{
	at[0].host = "sentinel.example";
	fake[2].where = UNKNOWN;
	sentinel_make();
	ask();
	ck_assert_uint_eq(port, 7000);
	ck_assert_uint_eq(fake[0].questions, 1);
}

/* A thread for each question would be one more with every question, for as long as the name is not resolved. */
TEST(a_name_that_is_being_resolved_is_not_asked_for_again)
{
	conf.timeout_us = LATE_US;
	at[0].host = "sentinel.example";
	fake[2].where = UNKNOWN;
	resolver_loop_hang_at(at[0].host);
	sentinel_make();
	for (unsigned i = 0; i < 3; i++)
		ask();
	ck_assert_str_eq(host, "");
	resolver_loop_await_asked(1);
	ck_assert_uint_eq(resolver_loop.asked, 1);
	sentinel_ask(sentinel);
	resolver_loop_go_on(1);
	resolver_loop_await(&answered, 4);
	ck_assert_uint_eq(port, 7000);
	ck_assert_uint_eq(resolver_loop.asked, 1);
}

/* That a name was resolved too late counts for no later question. */
TEST(a_name_that_was_resolved_too_late_is_asked_for_again)
{
	conf.timeout_us = LATE_US;
	at[0].host = "sentinel.example";
	fake[2].where = UNKNOWN;
	resolver_loop_hang_at(at[0].host);
	sentinel_make();
	ask();
	resolver_loop_go_on(2);
	resolver_loop_run(50 * MSEC);
	ck_assert_uint_eq(fake[0].connections, 0);
	ask();
	ck_assert_uint_eq(port, 7000);
	ck_assert_uint_eq(resolver_loop.asked, 2);
}

TEST(a_master_that_none_knows)
{
	for (unsigned i = 0; i < SENTINELS; i++)
		fake[i].where = UNKNOWN;
	ask();
	ck_assert_str_eq(host, "");
	ck_assert_str_eq(reason, "no sentinel knows a master named locks");
}

TEST(each_tells_why_in_its_own_order)
{
	char expected[512];

	fake[1].where = UNKNOWN;
	fake[2].where = NULL;
	is_gone(0);
	snprintf(expected, sizeof(expected),
	         "no sentinel tells where locks is: 127.0.0.1:1 Connection refused; 127.0.0.1:%u knows no such master; 127.0.0.1:%u is no sentinel", at[1].port,
	         at[2].port);
	for (unsigned i = 0; i < SENTINELS; i++) {
		ask();
		ck_assert_str_eq(reason, expected);
	}
}

/* Their connections have ended. 1: one of them has a name. */
LOOP_TEST(a_daemon_without_a_descriptor_does_not_blame_the_sentinels, 2)
{
	struct rlimit before, none = {0};

	if (_i)
		at[0].host = "sentinel.example";
	sentinel_make();
	ask();
	sentinel_follow(sentinel, true);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	resolver_loop_fail(EAI_SYSTEM);
	fake_redis_hang_up(&fake[0]);
	fake[1].where = "-NOAUTH Authentication required.\r\n";
	fake[2].where = UNKNOWN;
	resolver_loop_await(&heard, heard + 3);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_msg(strstr(trouble, "this daemon has no file descriptor left"), "%s", trouble);
	ck_assert_int_eq(trouble_defect, DEFECT_DESCRIPTORS);
}

static const char *const nonsense[] = {
	"+OK\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\na\r\n$1\r\n0\r\n", "*2\r\n$1\r\na\r\n$5\r\n65536\r\n", "*2\r\n$0\r\n\r\n$4\r\n7000\r\n",
	"*2\r\n$3\r\na b\r\n$4\r\n7000\r\n", "*1\r\n$1\r\na\r\n", "*2\r\n:1\r\n:2\r\n", "?\r\n", "*2\r\n$1\r\na\r\n$12\r\n999999999999\r\n",
};

LOOP_TEST(nonsense_is_no_address, (int)(sizeof(nonsense) / sizeof(nonsense[0])))
{
	fake[0].where = nonsense[_i];
	fake[1].where = UNKNOWN;
	ask();
	ck_assert_msg(strstr(reason, "too few sentinels (1 of 3) tell"), "%s", reason);
}

TEST(a_password_is_shown_to_each_and_never_told)
{
	conf.password = (char[]){"secret-4711"};
	ask();
	ask();
	ck_assert_uint_eq(fake[0].auths, 1);
	for (unsigned i = 0; i < SENTINELS; i++)
		fake[i].hands = "-WRONGPASS secret-4711 is wrong\r\n";
	for (unsigned i = 0; i < SENTINELS; i++)
		fake_redis_hang_up(&fake[i]);
	ask();
	ck_assert_msg(strstr(reason, "refuses: WRONGPASS") && !strstr(reason, "secret"), "%s", reason);
	ck_assert_int_eq(defect, DEFECT_SENTINEL_AUTH);
	for (unsigned i = 0; i < SENTINELS; i++)
		fake[i].hands = "-ERR not today\r\n";
	ask();
	ck_assert_int_eq(defect, DEFECT_SENTINEL);
}

TEST(a_move_is_told_once_while_the_master_is_followed)
{
	ask();
	sentinel_follow(sentinel, true);
	resolver_loop_await(&fake[0].questions, 4);
	ck_assert_uint_eq(moved, 0);
	fake[0].where = fake[1].where = fake[2].where = AT_7001;
	resolver_loop_await(&moved, 1);
	ck_assert_str_eq(reason, "10.0.0.1:7001");
	resolver_loop_run(5 * POLL_US);
	ck_assert_uint_eq(moved, 1);
	ask();
	ck_assert_uint_eq(port, 7001);
}

TEST(who_does_not_follow_asks_nothing)
{
	ask();
	sentinel_follow(sentinel, true);
	sentinel_follow(sentinel, false);
	resolver_loop_run(5 * POLL_US);
	ck_assert_uint_eq(fake[0].questions, 1);
}

TEST(sentinels_that_fall_silent_do_not_move_the_master)
{
	ask();
	sentinel_follow(sentinel, true);
	for (unsigned i = 0; i < SENTINELS; i++)
		fake[i].where = UNKNOWN;
	resolver_loop_await(&fake[2].questions, 2);
	ck_assert_uint_eq(moved, 0);
	ck_assert_uint_eq(answered, 1);
	for (unsigned i = 0; i < SENTINELS; i++)
		fake[i].where = AT_7001;
	resolver_loop_await(&moved, 1);
}

TEST(a_question_during_a_round_of_its_own_is_answered)
{
	ask();
	sentinel_follow(sentinel, true);
	fake[0].where = "";
	conf.timeout_us = LATE_US;
	resolver_loop_await(&fake[0].questions, 2);
	ask();
	ck_assert_uint_eq(port, 7000);
}
