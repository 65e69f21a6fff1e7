/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/resolver.c with a stand-in for getaddrinfo. */
#include "tests/fixture/resolver_loop.h"
#include "daemon/base/instant.h"

#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static unsigned answered;
static enum defect defect;
static char reason[256];
static struct addresses found;

static void on_found(void *context, const struct addresses *a, enum defect why_not, const char *why)
{
	ck_assert_ptr_eq(context, &found);
	defect = why_not;
	answered++;
	found = *a;
	(void)snprintf(reason, sizeof(reason), "%s", why);
}

static struct lookup *ask_for(const char *host)
{
	return resolver_ask(resolver_loop.resolver, host, 6379, on_found, &found);
}

static struct lookup *ask(void)
{
	return ask_for("redis.example");
}

FIXTURE(.setup = resolver_loop_open, .teardown = resolver_loop_close, .seconds = 30)

TEST(a_name_is_resolved_in_another_thread_and_answered_on_the_loop)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&found.item[0].name;

	resolver_loop_host(1, "127.0.0.2");
	resolver_loop_host(2, "::1");
	ask();
	ck_assert_uint_eq(answered, 0);
	resolver_loop_await(&answered, 1);
	ck_assert(!pthread_equal(resolver_loop.asked_by, pthread_self()));
	ck_assert_uint_eq(found.count, 3);
	ck_assert_int_eq(in->sin_family, AF_INET);
	ck_assert_int_eq(ntohs(in->sin_port), 6379);
	ck_assert_uint_eq(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK);
	ck_assert_int_eq(found.item[2].name.ss_family, AF_INET6);
}

TEST(a_failure_is_told_with_the_name)
{
	resolver_loop_fail(EAI_AGAIN);
	ask();
	resolver_loop_await(&answered, 1);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_ptr_eq(strstr(reason, "redis.example: "), reason);
	ck_assert_ptr_nonnull(strstr(reason, gai_strerror(EAI_AGAIN)));
	ck_assert_int_eq(defect, DEFECT_UNKNOWN_HOST);
}

TEST(a_daemon_without_a_descriptor_does_not_blame_the_name)
{
	resolver_loop_fail(EAI_SYSTEM);
	ask();
	resolver_loop_await(&answered, 1);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_str_eq(reason, "redis.example: this daemon has no file descriptor left");
	ck_assert_int_eq(defect, DEFECT_DESCRIPTORS);
}

/* The resolver then says what it likes. */
LOOP_TEST(a_lookup_that_lacks_a_descriptor_does_not_blame_the_name, 3)
{
	static const int said[] = {EAI_AGAIN, EAI_NONAME, EAI_FAIL};
	struct rlimit before, none = {0};

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	resolver_loop_fail(said[_i]);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ask();
	resolver_loop_await(&answered, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_str_eq(reason, "redis.example: this daemon has no file descriptor left");
	ck_assert_int_eq(defect, DEFECT_DESCRIPTORS);
}

TEST(the_loop_goes_on_while_a_name_hangs)
{
	resolver_loop_hang();
	ask();
	resolver_loop_await_asked(1);
	ck_assert_uint_eq(answered, 0);
	ask();
	resolver_loop_go_on(1);
	resolver_loop_await(&answered, 1);
	resolver_loop_go_on(1);
	resolver_loop_await(&answered, 2);
}

TEST(a_name_that_hangs_delays_no_other)
{
	unsigned i;

	resolver_loop_hang_at("slow.example");
	ask_for("slow.example");
	ask_for("slow.example");
	resolver_loop_await_asked(1);
	for (i = 1; i <= 3; i++) {
		ask();
		resolver_loop_await(&answered, i);
		ck_assert_ptr_eq(strstr(reason, "redis.example: "), reason);
	}
	resolver_loop_go_on(2);
	resolver_loop_await(&answered, 5);
	ck_assert_ptr_eq(strstr(reason, "slow.example: "), reason);
}

TEST(a_thread_that_cannot_start_fails_its_lookup_only)
{
	resolver_loop_threads(false);
	ask();
	ck_assert_uint_eq(answered, 0);
	resolver_loop_await(&answered, 1);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_ptr_eq(strstr(reason, "redis.example: cannot start a thread: "), reason);
	resolver_forget(ask());
	resolver_loop_threads(true);
	ask();
	resolver_loop_await(&answered, 2);
	ck_assert_uint_eq(found.count, 1);
	ck_assert_uint_eq(resolver_loop.asked, 1);
}

TEST(a_forgotten_question_is_not_answered)
{
	resolver_loop_hang_at("slow.example");
	resolver_forget(ask_for("slow.example"));
	resolver_forget(NULL);
	resolver_loop_await_asked(1);
	resolver_loop_go_on(1);
	ask();
	resolver_loop_await(&answered, 1);
	resolver_loop_run(20 * MSEC);
	ck_assert_uint_eq(answered, 1);
	ck_assert_uint_eq(resolver_loop.asked, 2);
}

TEST(a_resolver_can_be_freed_while_a_name_hangs)
{
	resolver_loop_hang();
	ask();
	ask();
	ask();
	resolver_loop_await_asked(3);
	resolver_loop_go_on(1); /* ends before or after the resolver */
	resolver_free(resolver_loop.resolver);
	resolver_loop.resolver = NULL;
	ck_assert_uint_eq(answered, 0);
	resolver_loop_go_on(1); /* the third hangs until the program ends */
}

TEST(numbers_need_no_thread)
{
	struct addresses a;

	ck_assert(addresses_from_number("127.0.0.1", 6379, &a));
	ck_assert_uint_eq(a.count, 1);
	ck_assert(addresses_from_number("::1", 6379, &a));
	ck_assert_int_eq(a.item[0].name.ss_family, AF_INET6);
	ck_assert(!addresses_from_number("localhost", 6379, &a));
	ck_assert(!addresses_from_number("", 6379, &a) || a.count > 0);
}
