/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/resolver.c with a stand-in for getaddrinfo. */
#include "tests/fixture/resolver_loop.h"

#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static unsigned answered;
static char reason[256];
static struct addresses found;

static void on_found(void *context, const struct addresses *a, const char *why)
{
	ck_assert_ptr_eq(context, &found);
	answered++;
	found = *a;
	(void)snprintf(reason, sizeof(reason), "%s", why);
}

static struct lookup *ask(void)
{
	return resolver_ask(resolver_loop.resolver, "redis.example", 6379, on_found, &found);
}

START_TEST(a_name_is_resolved_in_another_thread_and_answered_on_the_loop)
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
END_TEST

START_TEST(a_failure_is_told_with_the_name)
{
	resolver_loop_fail(EAI_AGAIN);
	ask();
	resolver_loop_await(&answered, 1);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_ptr_eq(strstr(reason, "redis.example: "), reason);
	ck_assert_ptr_nonnull(strstr(reason, gai_strerror(EAI_AGAIN)));
}
END_TEST

START_TEST(the_loop_goes_on_while_a_name_hangs)
{
	resolver_loop_hang();
	ask();
	while (!__atomic_load_n(&resolver_loop.asked, __ATOMIC_SEQ_CST))
		event_base_loop(resolver_loop.base, EVLOOP_NONBLOCK);
	ck_assert_uint_eq(answered, 0);
	ask();
	resolver_loop_go_on(1);
	resolver_loop_await(&answered, 1);
	resolver_loop_go_on(1);
	resolver_loop_await(&answered, 2);
}
END_TEST

START_TEST(a_forgotten_question_is_not_answered)
{
	struct lookup *first = ask();

	resolver_forget(first);
	resolver_forget(NULL);
	ask();
	resolver_loop_await(&answered, 1);
	ck_assert_uint_eq(resolver_loop.asked, 2);
}
END_TEST

START_TEST(a_resolver_can_be_freed_while_a_name_hangs)
{
	resolver_loop_hang();
	ask();
	ask();
	while (!__atomic_load_n(&resolver_loop.asked, __ATOMIC_SEQ_CST))
		;
	resolver_free(resolver_loop.resolver);
	resolver_loop.resolver = NULL;
	ck_assert_uint_eq(answered, 0);
	resolver_loop_go_on(1);
}
END_TEST

START_TEST(numbers_need_no_thread)
{
	struct addresses a;

	ck_assert(addresses_from_number("127.0.0.1", 6379, &a));
	ck_assert_uint_eq(a.count, 1);
	ck_assert(addresses_from_number("::1", 6379, &a));
	ck_assert_int_eq(a.item[0].name.ss_family, AF_INET6);
	ck_assert(!addresses_from_number("localhost", 6379, &a));
	ck_assert(!addresses_from_number("", 6379, &a) || a.count > 0);
}
END_TEST

Suite *resolver_suite(void)
{
	Suite *s = suite_create("resolver");
	TCase *t = tcase_create("resolver");

	tcase_add_checked_fixture(t, resolver_loop_open, resolver_loop_close);
	tcase_add_test(t, a_name_is_resolved_in_another_thread_and_answered_on_the_loop);
	tcase_add_test(t, a_failure_is_told_with_the_name);
	tcase_add_test(t, the_loop_goes_on_while_a_name_hangs);
	tcase_add_test(t, a_forgotten_question_is_not_answered);
	tcase_add_test(t, a_resolver_can_be_freed_while_a_name_hangs);
	tcase_add_test(t, numbers_need_no_thread);
	suite_add_tcase(s, t);
	return s;
}
