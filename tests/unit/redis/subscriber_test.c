/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/subscriber.c: a real server that publishes for us, or refuses to. */
#include "tests/fixture/real_upstream.h"

#include "daemon/base/clock.h"
#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

static void setup(void)
{
	real_upstream_begin(false);
	real_upstream.conf.daemon_id = "d1";
}

static void teardown(void)
{
	real_upstream_end();
}

/* A user who may do all but receive messages; these rules come last. */
static void become_user(const char *rules)
{
	char line[128];

	(void)snprintf(line, sizeof(line), "ACL SETUSER u on >secret-4711 resetchannels ~* +@all %s", rules);
	real_redis_tell_line(&real_upstream.server, line);
	real_upstream.conf.user = "u";
	real_upstream.conf.password = "secret-4711";
}

/* Publishes this text of Lua until somebody receives it, who is the subscriber. */
static void is_told_that(const char *text)
{
	struct instant until = instant_add(clock_boottime(), 20 * SEC);
	unsigned before = real_upstream.messages;
	char script[160];

	snprintf(script, sizeof(script), "return tostring(redis.call('PUBLISH', 'redlockd:lock:d:d1', '%s'))", text);
	while (strcmp(real_redis_tell(&real_upstream.server, "EVAL %s 0", script), "1") != 0) {
		ck_assert(instant_before(clock_boottime(), until));
		real_upstream_run(5 * MSEC);
	}
	real_upstream_await(&real_upstream.messages, before + 1);
}

static void is_told(void)
{
	is_told_that("wlock:a");
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(what_is_published_arrives)
{
	become_user("&redlockd:*");
	real_upstream_up();
	is_told();
	ck_assert_uint_eq(real_upstream.refusals + real_upstream.subscriptions, 0);
}

TEST(the_name_of_a_message_is_that_of_calls_about_the_key)
{
	static const char *const text[] = {"wlock:a", "wredlockd:lock:s:a#0", "wlock:\\1s:a#0", "tlock:\\1s:a#0"};
	static const char *const name[] = {"a", SLOT_PREFIX "a#0", "\001\001s:a#0", "\001s:a#0"}; /* the last one is a queue */

	become_user("&redlockd:*");
	real_upstream_up();
	for (unsigned i = 0; i < 4; i++) {
		is_told_that(text[i]);
		ck_assert_msg(span_equal((struct span){real_upstream.message, real_upstream.message_n}, span_of(name[i])), "%s", text[i]);
	}
}

static const char *const refused[] = {"-subscribe &redlockd:*", "&other:*"};

LOOP_TEST(a_refusal_is_told_with_the_text_of_the_server_and_pauses_grow, sizeof(refused) / sizeof(*refused))
{
	struct instant begin;
	int64_t least = 0;

	become_user(refused[_i]);
	real_upstream_up();
	begin = clock_boottime();
	real_upstream_await(&real_upstream.refusals, 1);
	ck_assert_msg(!strncmp(real_upstream.refusal, "it refuses SUBSCRIBE: NOPERM ", 29) &&
			      strstr(real_upstream.refusal, "; permit +subscribe and &redlockd:*, see REDIS ACCESS in redlockd(8)"),
	              "%s", real_upstream.refusal);
	real_upstream_run(3 * SEC);
	ck_assert_uint_ge(real_upstream.refusals, 2);
	for (unsigned i = 1; i < real_upstream.refusals; i++)
		least += 250 * MSEC << (i - 1); /* the first pause takes 250 ms or more, each other twice that of the one before */
	ck_assert_int_le(least, instant_diff(clock_boottime(), begin));
	ck_assert_uint_eq(real_upstream.downs + real_upstream.subscriptions, 0);
}

TEST(a_server_that_permits_it_at_last_is_told_once)
{
	become_user("&other:*");
	real_upstream_up();
	real_upstream_await(&real_upstream.refusals, 2);
	real_redis_tell_line(&real_upstream.server, "ACL SETUSER u &redlockd:*");
	real_upstream_await(&real_upstream.subscriptions, 1);
	is_told();
	real_redis_tell_line(&real_upstream.server, "CLIENT KILL TYPE pubsub");
	is_told();
	ck_assert_uint_eq(real_upstream.subscriptions, 1);
}

TEST(a_permission_that_is_taken_away_is_told_while_the_subscription_lasts)
{
	become_user("&redlockd:*");
	real_upstream_up();
	is_told();
	real_redis_tell_line(&real_upstream.server, "ACL SETUSER u -subscribe");
	real_upstream_await(&real_upstream.refusals, 1);
	ck_assert_msg(!strncmp(real_upstream.refusal, "it refuses SUBSCRIBE: NOPERM ", 29), "%s", real_upstream.refusal);
	is_told();
	real_redis_tell_line(&real_upstream.server, "ACL SETUSER u +subscribe");
	real_upstream_await(&real_upstream.subscriptions, 1);
	is_told();
	ck_assert_uint_eq(real_upstream.downs, 0);
}

static void may_connect(bool may)
{
	const uid_t nobody = 65534;

	ck_assert_int_eq(getuid() == 0 ? seteuid(may ? 0 : nobody) : chmod(real_upstream.server.path, may ? 0700 : 0), 0);
}

TEST(a_daemon_that_may_no_longer_connect_says_so_until_it_may)
{
	real_upstream_up();
	is_told();
	may_connect(false);
	real_redis_tell_line(&real_upstream.server, "CLIENT KILL TYPE pubsub");
	real_upstream_await(&real_upstream.refusals, 1);
	may_connect(true);
	ck_assert_str_eq(real_upstream.refusal, "no connection for SUBSCRIBE: Permission denied");
	ck_assert_int_eq(real_upstream.refused, DEFECT_SOCKET);
	real_upstream_await(&real_upstream.subscriptions, 1);
	is_told();
}

TEST(a_daemon_that_lacks_a_descriptor_says_so_until_it_has_one)
{
	real_upstream_up();
	is_told();
	real_redis_tell_line(&real_upstream.server, "CLIENT KILL TYPE pubsub");
	real_upstream_lack_descriptors(true);
	real_upstream_await(&real_upstream.refusals, 1);
	real_upstream_lack_descriptors(false);
	ck_assert_str_eq(real_upstream.refusal, "no connection for SUBSCRIBE: this daemon has no file descriptor left");
	ck_assert_int_eq(real_upstream.refused, DEFECT_DESCRIPTORS);
	real_upstream_await(&real_upstream.subscriptions, 1);
	is_told();
}
