/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/resolver.c with a stand-in for getaddrinfo, and what node.c makes of its answers. */
#include "daemon/base/clock.h"
#include "daemon/base/rng.h"
#include "daemon/redis/node.h"
#include "daemon/redis/resolver.h"
#include "tests/unit/fake.h"

#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_S 20

static struct event_base *base;
static struct resolver *resolver;
static unsigned answered, asked;
static char reason[256];
static struct addresses found;

/* The stand-in: what it says, and a pipe that it waits for first. */
static const char *hosts[3]; /* numeric; the answer */
static int failure;
static int gate[2] = {-1, -1};
static pthread_t asked_by;
static pthread_mutex_t orders = PTHREAD_MUTEX_INITIALIZER; /* of hosts, failure and gate, once the thread runs */

/* glibc frees each entry with its address in one piece, so this borrows real lists. */
static int stand_in(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	struct addrinfo numeric = *hints, *list[3] = {NULL};
	int i, fd, fails;
	char byte;

	asked_by = pthread_self();
	__atomic_fetch_add(&asked, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&orders);
	fd = gate[0];
	fails = failure;
	pthread_mutex_unlock(&orders);
	if (fd >= 0 && read(fd, &byte, 1) != 1)
		return EAI_FAIL;
	if (fails)
		return fails;
	(void)host;
	numeric.ai_flags |= AI_NUMERICHOST;
	pthread_mutex_lock(&orders);
	for (i = 0; i < 3 && hosts[i]; i++)
		ck_assert_int_eq(getaddrinfo(hosts[i], service, &numeric, &list[i]), 0);
	pthread_mutex_unlock(&orders);
	for (i = 0; i < 2 && list[i]; i++)
		list[i]->ai_next = list[i + 1];
	*ret_list = list[0];
	return list[0] ? 0 : EAI_NONAME;
}

static void set_host(int i, const char *host)
{
	pthread_mutex_lock(&orders);
	hosts[i] = host;
	pthread_mutex_unlock(&orders);
}

static void set_failure(int error)
{
	pthread_mutex_lock(&orders);
	failure = error;
	pthread_mutex_unlock(&orders);
}

static void close_gate(void)
{
	pthread_mutex_lock(&orders);
	ck_assert_int_eq(pipe(gate), 0);
	pthread_mutex_unlock(&orders);
}

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	resolver = resolver_new(base, stand_in);
	hosts[0] = "127.0.0.1";
}

static void teardown(void)
{
	resolver_free(resolver);
	event_base_free(base);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	*(bool *)context = true;
}

static void await(const unsigned *n, unsigned at_least)
{
	struct timeval tv = {DEADLINE_S, 0};
	bool late = false;
	struct event *deadline = evtimer_new(base, on_deadline, &late);

	evtimer_add(deadline, &tv);
	while (__atomic_load_n(n, __ATOMIC_RELAXED) < at_least && !late)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(deadline);
	ck_assert_msg(!late, "%u, not %u", *n, at_least);
}

static void run(int64_t us)
{
	struct timeval tv = {us / SEC, us % SEC};
	bool over = false;
	struct event *end = evtimer_new(base, on_deadline, &over);

	evtimer_add(end, &tv);
	while (!over)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(end);
}

static void on_found(void *context, const struct addresses *a, const char *why)
{
	ck_assert_ptr_eq(context, &found);
	answered++;
	found = *a;
	(void)snprintf(reason, sizeof(reason), "%s", why);
}

static struct lookup *ask(void)
{
	return resolver_ask(resolver, "redis.example", 6379, on_found, &found);
}

static void open_gate_for(size_t n)
{
	ck_assert_int_eq(write(gate[1], "xxxxxxxxxxxxxxxxxxxxxxxx", n), (ssize_t)n);
}

static void open_gate(void)
{
	open_gate_for(1);
}

START_TEST(a_name_is_resolved_in_another_thread_and_answered_on_the_loop)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&found.item[0].name;

	set_host(1, "127.0.0.2");
	set_host(2, "::1");
	ask();
	ck_assert_uint_eq(answered, 0);
	await(&answered, 1);
	ck_assert(!pthread_equal(asked_by, pthread_self()));
	ck_assert_uint_eq(found.count, 3);
	ck_assert_int_eq(in->sin_family, AF_INET);
	ck_assert_int_eq(ntohs(in->sin_port), 6379);
	ck_assert_uint_eq(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK);
	ck_assert_int_eq(found.item[2].name.ss_family, AF_INET6);
}
END_TEST

START_TEST(a_failure_is_told_with_the_name)
{
	set_failure(EAI_AGAIN);
	ask();
	await(&answered, 1);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_ptr_eq(strstr(reason, "redis.example: "), reason);
	ck_assert_ptr_nonnull(strstr(reason, gai_strerror(EAI_AGAIN)));
}
END_TEST

START_TEST(the_loop_goes_on_while_a_name_hangs)
{
	close_gate();
	ask();
	while (!__atomic_load_n(&asked, __ATOMIC_SEQ_CST))
		event_base_loop(base, EVLOOP_NONBLOCK);
	ck_assert_uint_eq(answered, 0);
	ask();
	open_gate();
	await(&answered, 1);
	open_gate();
	await(&answered, 2);
}
END_TEST

START_TEST(a_forgotten_question_is_not_answered)
{
	struct lookup *first = ask();

	resolver_forget(first);
	resolver_forget(NULL);
	ask();
	await(&answered, 1);
	ck_assert_uint_eq(asked, 2);
}
END_TEST

START_TEST(a_resolver_can_be_freed_while_a_name_hangs)
{
	close_gate();
	ask();
	ask();
	while (!__atomic_load_n(&asked, __ATOMIC_SEQ_CST))
		;
	resolver_free(resolver);
	resolver = NULL;
	ck_assert_uint_eq(answered, 0);
	open_gate();
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

/* --- nodes with names ------------------------------------------------------------------------------------------------ */

static struct fake fake;
static struct link_conf link_conf;
static struct upstream_sink sink;
static struct node_conf node_conf;
static struct node *node;
static struct rng rng;
static unsigned ups, downs;

static void on_up(void *context, unsigned index)
{
	(void)context, (void)index;
	ups++;
}

static void on_down(void *context, unsigned index, const char *why)
{
	(void)context, (void)index;
	downs++;
	(void)snprintf(reason, sizeof(reason), "%s", why);
}

static void setup_node(void)
{
	static const uint64_t seed[2];

	setup();
	rng_init(&rng, seed);
	fake_start(&fake, base, true); /* on 127.0.0.1 */
	link_conf = (struct link_conf){.connect_timeout_us = 5 * SEC, .stall_us = 5 * SEC, .ping_us = 5 * SEC};
	script_keys_init(&link_conf.stream.keys, "lock:", SEC);
	sink = (struct upstream_sink){.up = on_up, .down = on_down};
	node_conf = (struct node_conf){.base = base, .link = &link_conf, .resolver = resolver, .rng = &rng, .links = 2, .sink = &sink};
}

static void teardown_node(void)
{
	node_free(node);
	script_keys_release(&link_conf.stream.keys);
	fake_stop(&fake);
	teardown();
}

static void node_dial_name(const char *host)
{
	struct upstream_address address = {.label = "a", .host = host};

	address.port = ntohs(((struct sockaddr_in *)&fake.address)->sin_port);
	node = node_new(&node_conf, 0, &address);
}

START_TEST(every_address_of_a_name_is_tried_in_turn)
{
	set_host(0, "127.0.0.2");
	set_host(1, "127.0.0.3");
	set_host(2, "127.0.0.1");
	node_dial_name("redis.example");
	await(&ups, 1);
	ck_assert_uint_eq(downs, 0);
	ck_assert_uint_eq(asked, 1);
	ck_assert_uint_eq(fake.connections, 2);
}
END_TEST

START_TEST(a_name_whose_addresses_all_fail_is_down_and_asked_again)
{
	set_host(0, "127.0.0.2");
	set_host(1, "127.0.0.3");
	node_dial_name("redis.example");
	await(&downs, 1);
	ck_assert_str_eq(reason, "Connection refused");
	await(&asked, 3);
	ck_assert_uint_eq(downs, 1);
	set_host(0, "127.0.0.1");
	await(&ups, 1);
}
END_TEST

START_TEST(a_name_that_is_not_known_is_told_once_and_asked_again)
{
	set_failure(EAI_NONAME);
	node_dial_name("redis.example");
	await(&downs, 1);
	ck_assert_ptr_nonnull(strstr(reason, "redis.example: "));
	await(&asked, 3);
	ck_assert_uint_eq(downs, 1);
	set_failure(0);
	await(&ups, 1);
}
END_TEST

START_TEST(the_last_good_answer_serves_while_the_resolver_fails)
{
	node_dial_name("redis.example");
	await(&ups, 1);
	set_failure(EAI_AGAIN);
	fake_hang_up(&fake);
	await(&downs, 1);
	await(&ups, 2);
	ck_assert_uint_ge(asked, 2);
}
END_TEST

START_TEST(the_last_good_answer_serves_while_the_resolver_hangs)
{
	node_dial_name("redis.example");
	await(&ups, 1);
	close_gate();
	fake_hang_up(&fake);
	await(&downs, 1);
	await(&ups, 2);
	open_gate();
}
END_TEST

START_TEST(a_name_that_hangs_is_told_and_asked_only_once)
{
	close_gate();
	link_conf.connect_timeout_us = 20 * MSEC;
	node_dial_name("redis.example");
	await(&downs, 1);
	ck_assert_str_eq(reason, "the name is not resolved in time");
	run(500 * MSEC); /* several attempts */
	ck_assert_uint_eq(__atomic_load_n(&asked, __ATOMIC_SEQ_CST), 1);
	ck_assert_uint_eq(downs, 1);
	open_gate_for(24);
	await(&ups, 1);
	run(50 * MSEC);
	ck_assert_uint_le(__atomic_load_n(&asked, __ATOMIC_SEQ_CST), 2);
}
END_TEST

START_TEST(a_number_is_never_asked_for)
{
	node_dial_name("127.0.0.1");
	await(&ups, 1);
	ck_assert_uint_eq(asked, 0);
}
END_TEST

START_TEST(a_node_can_be_freed_while_its_name_hangs)
{
	close_gate();
	node_dial_name("redis.example");
	while (!__atomic_load_n(&asked, __ATOMIC_SEQ_CST))
		event_base_loop(base, EVLOOP_NONBLOCK);
	node_free(node);
	node = NULL;
	open_gate();
}
END_TEST

Suite *resolver_suite(void)
{
	Suite *s = suite_create("resolver");
	TCase *t = tcase_create("resolver"), *n = tcase_create("node");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_name_is_resolved_in_another_thread_and_answered_on_the_loop);
	tcase_add_test(t, a_failure_is_told_with_the_name);
	tcase_add_test(t, the_loop_goes_on_while_a_name_hangs);
	tcase_add_test(t, a_forgotten_question_is_not_answered);
	tcase_add_test(t, a_resolver_can_be_freed_while_a_name_hangs);
	tcase_add_test(t, numbers_need_no_thread);
	suite_add_tcase(s, t);
	tcase_set_timeout(n, 30);
	tcase_add_checked_fixture(n, setup_node, teardown_node);
	tcase_add_test(n, every_address_of_a_name_is_tried_in_turn);
	tcase_add_test(n, a_name_whose_addresses_all_fail_is_down_and_asked_again);
	tcase_add_test(n, a_name_that_is_not_known_is_told_once_and_asked_again);
	tcase_add_test(n, the_last_good_answer_serves_while_the_resolver_fails);
	tcase_add_test(n, the_last_good_answer_serves_while_the_resolver_hangs);
	tcase_add_test(n, a_name_that_hangs_is_told_and_asked_only_once);
	tcase_add_test(n, a_number_is_never_asked_for);
	tcase_add_test(n, a_node_can_be_freed_while_its_name_hangs);
	suite_add_tcase(s, n);
	return s;
}
