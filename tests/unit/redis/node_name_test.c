/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/node.c: names with several addresses, unknown names, names whose resolution hangs, and paths that lead elsewhere. */
#include "daemon/redis/node.h"
#include "daemon/base/clock.h"
#include "daemon/base/rng.h"
#include "tests/fixture/fake_redis.h"
#include "tests/fixture/resolver_loop.h"

#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char reason[256];
static struct fake_redis fake;
static struct link_conf link_conf;
static struct upstream_sink sink;
static struct node_conf node_conf;
static struct node *node, *other;
static struct rng rng;
static unsigned ups, downs, moves, answers;
static char trouble[160];
static enum defect cause; /* … of it */

static void on_up(void *context, unsigned index, const char *address)
{
	(void)context, (void)index, (void)address;
	ups++;
}

static void on_down(void *context, unsigned index, enum defect defect, const char *why, const char *address)
{
	(void)context, (void)index, (void)defect;
	downs++;
	moves += *address != '\0';
	(void)snprintf(reason, sizeof(reason), "%s", why);
}

static void on_unwatched(void *context, unsigned index, enum defect defect, const char *why, const char *told)
{
	(void)context, (void)index, (void)told;
	cause = defect;
	(void)snprintf(trouble, sizeof(trouble), "%s%s", defect == DEFECT_UNKNOWN_HOST ? "host: " : "", why);
}

static void on_answer(void *context, const struct answer *a)
{
	(void)context, (void)a;
	answers++;
}

static void setup_node(void)
{
	static const uint64_t seed[2];

	resolver_loop_open();
	rng_init(&rng, seed);
	fake_redis_start(&fake, resolver_loop.base, true); /* on 127.0.0.1 */
	link_conf = (struct link_conf){.connect_timeout_us = 5 * SEC, .stall_us = 5 * SEC, .ping_us = 5 * SEC};
	script_keys_init(&link_conf.stream.keys, "lock:", SEC, 0, "");
	sink = (struct upstream_sink){.up = on_up, .down = on_down, .answer = on_answer, .unwatched = on_unwatched};
	node_conf =
		(struct node_conf){.base = resolver_loop.base, .link = &link_conf, .resolver = resolver_loop.resolver, .rng = &rng, .links = 2, .sink = &sink,
		                   .name_us = 60 * SEC, .redial_us = 60 * SEC};
}

static void teardown_node(void)
{
	node_free(node);
	node_free(other);
	script_keys_release(&link_conf.stream.keys);
	fake_redis_stop(&fake);
	resolver_loop_close();
}

static struct node *node_named(unsigned index, const char *host)
{
	struct upstream_address address = {.label = "a", .host = host};

	address.port = ntohs(((struct sockaddr_in *)&fake.address)->sin_port);
	return node_new(&node_conf, index, &address);
}

static void node_dial_name(const char *host)
{
	node = node_named(0, host);
}

FIXTURE(.setup = setup_node, .teardown = teardown_node, .seconds = 30)

TEST(every_address_of_a_name_is_tried_in_turn)
{
	resolver_loop_host(0, "127.0.0.2");
	resolver_loop_host(1, "127.0.0.3");
	resolver_loop_host(2, "127.0.0.1");
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(downs, 0);
	ck_assert_uint_eq(resolver_loop.asked, 1);
	ck_assert_uint_eq(fake.connections, 2);
}

TEST(a_name_whose_addresses_all_fail_is_down_and_asked_again)
{
	resolver_loop_host(0, "127.0.0.2");
	resolver_loop_host(1, "127.0.0.3");
	node_dial_name("redis.example");
	resolver_loop_await(&downs, 1);
	ck_assert_str_eq(reason, "Connection refused");
	resolver_loop_await(&resolver_loop.asked, 3);
	ck_assert_uint_ge(downs, 2);
	resolver_loop_host(0, "127.0.0.1");
	resolver_loop_await(&ups, 1);
}

TEST(what_one_address_answers_is_told_though_another_cannot_be_reached)
{
	fake.greeting = "-ERR max number of clients reached\r\n";
	resolver_loop_host(0, "127.0.0.1");
	resolver_loop_host(1, "127.0.0.2");
	node_dial_name("redis.example");
	for (unsigned n = 1; n <= 3; n++) {
		resolver_loop_await(&downs, n);
		ck_assert_str_eq(reason, "ERR max number of clients reached");
	}
	resolver_loop_host(0, "127.0.0.3");
	resolver_loop_await(&downs, downs + 2);
	ck_assert_str_eq(reason, "Connection refused");
}

TEST(a_master_that_its_name_no_longer_leads_to_is_told_and_kept)
{
	node_conf.name_us = 30 * MSEC;
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	resolver_loop_fail(EAI_AGAIN); /* that says nothing */
	resolver_loop_await_asked(4);
	ck_assert_uint_eq(downs, 0);
	resolver_loop_fail(0);
	resolver_loop_host(0, "127.0.0.2");
	resolver_loop_await_asked(resolver_loop.asked + 3);
	ck_assert_str_eq(trouble, "host: redis.example leads to other addresses now");
	resolver_loop_host(0, "127.0.0.1");
	resolver_loop_await_asked(resolver_loop.asked + 4);
	ck_assert_str_eq(trouble, "host: redis.example led to other addresses within the last minute"); /* name servers may give one address after the other */
	resolver_loop_await_asked(resolver_loop.asked + 12);
	ck_assert_str_eq(trouble, "");
	ck_assert_uint_eq(downs, 0);
}

TEST(a_name_that_is_gone_for_a_minute_is_told)
{
	node_conf.name_us = 30 * MSEC;
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	resolver_loop_fail(EAI_NONAME);
	resolver_loop_await_asked(resolver_loop.asked + 6);
	ck_assert_str_eq(trouble, "");
	resolver_loop_await_asked(resolver_loop.asked + 12);
	ck_assert_ptr_eq(strstr(trouble, "host: redis.example: "), trouble);
	ck_assert_ptr_nonnull(strstr(trouble, ", for a minute now: no daemon that starts can connect"));
	ck_assert_uint_eq(downs, 0);
	resolver_loop_fail(0);
	resolver_loop_await_asked(resolver_loop.asked + 3);
	ck_assert_str_eq(trouble, "");
}

TEST(a_daemon_without_a_descriptor_does_not_blame_the_name_of_a_server)
{
	struct rlimit before, none = {0};

	node_conf.name_us = node_conf.redial_us = 30 * MSEC;
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	resolver_loop_fail(EAI_AGAIN);
	resolver_loop_await_asked(resolver_loop.asked + 16);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_str_eq(trouble, "it takes no new connection: this daemon has no file descriptor left");
	ck_assert_int_eq(cause, DEFECT_DESCRIPTORS);
	ck_assert_uint_eq(downs, 0);
}

TEST(that_no_descriptor_is_left_is_told_before_what_is_wrong_with_the_name)
{
	struct rlimit before, none = {0};

	node_conf.redial_us = 30 * MSEC;
	resolver_loop_host(1, "127.0.0.2");
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	ck_assert_int_eq(cause, DEFECT_UNKNOWN_HOST);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (unsigned i = 0; i < 100 && cause != DEFECT_DESCRIPTORS; i++)
		resolver_loop_run(20 * MSEC);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(cause, DEFECT_DESCRIPTORS);
	for (unsigned i = 0; i < 100 && cause != DEFECT_UNKNOWN_HOST; i++)
		resolver_loop_run(20 * MSEC);
	ck_assert_int_eq(cause, DEFECT_UNKNOWN_HOST);
}

TEST(a_name_of_several_servers_is_told)
{
	node_conf.name_us = 30 * MSEC;
	resolver_loop_host(0, "127.0.0.1");
	resolver_loop_host(1, "127.0.0.2");
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	resolver_loop_await_asked(3);
	ck_assert_str_eq(trouble, "host: redis.example has several addresses: each daemon may use another server");
	ck_assert_uint_eq(downs, 0);
}

static void trouble_becomes(const char *text)
{
	for (unsigned i = 0; i < 500 && strcmp(trouble, text) != 0; i++)
		resolver_loop_run(20 * MSEC);
	ck_assert_str_eq(trouble, text);
}

#define SEVERAL_SERVERS "its connections lead to several servers, so each daemon may use another one: name each server itself"
#define SERVER_A        "$2\r\naa\r\n"
#define SERVER_B        "$2\r\nbb\r\n"

/* The name leads to both the fake, which is dialled, and this one. */
static void node_dial_two(struct fake_redis *rival)
{
	fake_redis_start_beside(rival, &fake, 0x7f000002);
	fake.run_id = SERVER_A;
	rival->run_id = SERVER_B;
	resolver_loop_host(0, "127.0.0.1");
	resolver_loop_host(1, "127.0.0.2");
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	ck_assert_uint_ge(fake.connections, 2);
}

TEST(a_further_address_of_another_server_is_told)
{
	struct fake_redis rival;

	node_dial_two(&rival);
	trouble_becomes("host: " SEVERAL_SERVERS);
	ck_assert_uint_eq(downs, 0);
	fake_redis_stop(&rival);
}

/* 1: nobody listens at the further one. */
LOOP_TEST(a_further_address_of_the_same_server_is_no_other, 2)
{
	struct fake_redis rival;

	node_conf.redial_us = 20 * MSEC;
	fake_redis_start_beside(&rival, &fake, 0x7f000002);
	fake.run_id = rival.run_id = SERVER_A;
	if (_i == 1)
		fake_redis_stop(&rival);
	resolver_loop_host(1, "127.0.0.2");
	node_dial_name("redis.example");
	resolver_loop_await(&fake.connections, 6);
	ck_assert_str_eq(trouble, "host: redis.example has several addresses: each daemon may use another server");
	ck_assert_uint_eq(downs, 0);
	if (_i == 0) {
		ck_assert_uint_ge(rival.connections, 1);
		fake_redis_stop(&rival);
	}
}

/* Daemons whose connections to the first one last would stay there. */
TEST(a_node_does_not_go_on_with_another_server_of_its_name)
{
	struct fake_redis rival;

	node_dial_two(&rival);
	fake.greeting = "-ERR max number of clients reached\r\n";
	fake_redis_hang_up(&fake);
	resolver_loop_await(&downs, 3);
	ck_assert_str_eq(reason, SEVERAL_SERVERS);
	ck_assert_uint_eq(ups, 1);
	fake.greeting = NULL;
	fake.run_id = "$2\r\ncc\r\n"; /* it may have been started anew */
	resolver_loop_await(&ups, 2);
	fake_redis_stop(&rival);
}

/* Its server listens at one address of its name alone since it was started anew. */
TEST(a_node_goes_on_with_another_address_of_its_name_where_nobody_listens_any_more)
{
	struct fake_redis rival;

	node_conf.redial_us = 50 * MSEC;
	fake_redis_start_beside(&rival, &fake, 0x7f000002);
	rival.run_id = SERVER_A;
	fake.run_id = SERVER_B;
	resolver_loop_host(0, "127.0.0.2");
	resolver_loop_host(1, "127.0.0.1");
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	fake_redis_stop(&rival);
	resolver_loop_await(&downs, 1);
	resolver_loop_await(&ups, 2);
}

TEST(a_node_goes_on_where_its_name_leads_now)
{
	struct fake_redis rival;

	node_dial_two(&rival);
	resolver_loop_host(0, "127.0.0.2");
	resolver_loop_host(1, NULL);
	fake.greeting = "-ERR max number of clients reached\r\n";
	fake_redis_hang_up(&fake);
	resolver_loop_await(&ups, 2);
	ck_assert_uint_ge(rival.connections, 2);
	fake_redis_stop(&rival);
}

TEST(an_address_whose_new_connections_reach_another_server_is_told)
{
	node_conf.redial_us = 30 * MSEC;
	fake.run_id = SERVER_A;
	node_dial_name("127.0.0.1");
	resolver_loop_await(&fake.connections, 4);
	resolver_loop_run(20 * MSEC);
	ck_assert_str_eq(trouble, "");
	fake.run_id = SERVER_B;
	trouble_becomes("host: " SEVERAL_SERVERS);
	resolver_loop_run(100 * MSEC);
	ck_assert_str_eq(trouble, "host: " SEVERAL_SERVERS);
	ck_assert_uint_eq(downs, 0);
}

/* Only both together: a replica alone may be the master again, and of two servers the one that is connected serves. */
LOOP_TEST(a_replica_is_left_that_new_connections_do_not_reach, 2)
{
	struct call call = {.kind = CALL_ACQUIRE, .name = SPAN("a"), .value = SPAN("v"), .px_ms = 1000};
	bool replica_first = _i == 0;
	unsigned before;

	node_conf.redial_us = 30 * MSEC;
	fake.run_id = SERVER_A;
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	for (unsigned step = 0; step < 2; step++) {
		ck_assert_uint_eq(downs, 0);
		if (replica_first == (step == 0)) {
			fake.script = "-READONLY You can't write against a read only replica. script: x, on @user_script:1.\r\n";
			ck_assert(node_call(node, &call, 1));
			(void)node_flush(node, (struct instant){0}, true);
			resolver_loop_await(&answers, 1);
		} else {
			fake.run_id = SERVER_B;
		}
		before = fake.connections;
		if (step == 0)
			resolver_loop_await(&fake.connections, before + 3);
	}
	resolver_loop_await(&downs, 1);
	ck_assert_str_eq(reason, "it has become a replica, and new connections reach another server");
	ck_assert_uint_eq(moves, 0);
	resolver_loop_await(&ups, 2);
}

/* Long before the next look: somebody makes another server the master, and lets the name lead there. */
TEST(the_name_of_a_replica_is_resolved_again)
{
	struct call call = {.kind = CALL_ACQUIRE, .name = SPAN("a"), .value = SPAN("v"), .px_ms = 1000};

	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	resolver_loop_host(0, "127.0.0.2");
	fake.script = "-READONLY You can't write against a read only replica. script: x, on @user_script:1.\r\n";
	ck_assert(node_call(node, &call, 1));
	(void)node_flush(node, (struct instant){0}, true);
	resolver_loop_await(&answers, 1);
	resolver_loop_await(&moves, 1);
}

TEST(a_name_that_is_not_known_is_told_and_asked_again)
{
	resolver_loop_fail(EAI_NONAME);
	node_dial_name("redis.example");
	resolver_loop_await(&downs, 1);
	ck_assert_ptr_nonnull(strstr(reason, "redis.example: "));
	resolver_loop_await(&resolver_loop.asked, 3);
	ck_assert_uint_ge(downs, 2);
	resolver_loop_fail(0);
	resolver_loop_await(&ups, 1);
}

TEST(the_last_good_answer_serves_while_the_resolver_fails)
{
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	resolver_loop_fail(EAI_AGAIN);
	fake_redis_hang_up(&fake);
	resolver_loop_await(&downs, 1);
	resolver_loop_await(&ups, 2);
	ck_assert_uint_ge(resolver_loop.asked, 2);
}

TEST(the_last_good_answer_serves_while_the_resolver_hangs)
{
	node_dial_name("redis.example");
	resolver_loop_await(&ups, 1);
	resolver_loop_hang();
	fake_redis_hang_up(&fake);
	resolver_loop_await(&downs, 1);
	resolver_loop_await(&ups, 2);
	resolver_loop_go_on(1);
}

static void on_message(void *context, unsigned index, char what, struct span name)
{
	(void)context, (void)index, (void)what, (void)name;
}

/* The name means another server by the time the connections are ready. The listener still goes to the server that is asked. */
TEST(a_server_is_listened_to_where_it_was_dialled)
{
	sink.message = on_message;
	node_conf.channel = "redlockd:lock:d:x";
	node_dial_name("redis.example");
	resolver_loop_await(&fake.connections, 3);
	resolver_loop_hang();
	resolver_loop_host(0, "127.0.0.2");
	fake.deaf = true;
	fake_redis_hang_up(&fake);
	resolver_loop_await(&fake.connections, 5); /* at the old address, since the resolver hangs */
	resolver_loop_go_on(1);
	resolver_loop_run(100 * MSEC);
	fake_redis_listen(&fake);
	resolver_loop_await(&ups, 2);
	resolver_loop_await(&fake.connections, 6);
}

TEST(a_name_that_hangs_is_asked_only_once)
{
	resolver_loop_hang();
	link_conf.connect_timeout_us = 20 * MSEC;
	node_dial_name("redis.example");
	resolver_loop_await(&downs, 1);
	ck_assert_str_eq(reason, "the name is not resolved in time");
	resolver_loop_run(500 * MSEC); /* several attempts */
	ck_assert_uint_eq(__atomic_load_n(&resolver_loop.asked, __ATOMIC_SEQ_CST), 1);
	link_conf.connect_timeout_us = 5 * SEC;
	resolver_loop_go_on(24);
	resolver_loop_await(&ups, 1);
	resolver_loop_run(50 * MSEC);
	ck_assert_uint_le(__atomic_load_n(&resolver_loop.asked, __ATOMIC_SEQ_CST), 2);
}

TEST(a_name_that_hangs_keeps_no_other_node_down)
{
	resolver_loop_hang_at("slow.example");
	link_conf.connect_timeout_us = 100 * MSEC;
	node_dial_name("slow.example");
	resolver_loop_await_asked(1);
	link_conf.connect_timeout_us = 5 * SEC;
	other = node_named(1, "redis.example");
	resolver_loop_await(&ups, 1);
	resolver_loop_await(&downs, 1);
	ck_assert_str_eq(node_reason(node), "the name is not resolved in time");
	resolver_loop_go_on(1);
	resolver_loop_await(&ups, 2);
}

TEST(a_node_asks_again_after_a_thread_could_not_be_started)
{
	resolver_loop_threads(false);
	node_dial_name("redis.example");
	resolver_loop_await(&downs, 1);
	ck_assert_ptr_eq(strstr(reason, "redis.example: cannot start a thread: "), reason);
	resolver_loop_threads(true);
	resolver_loop_await(&ups, 1);
}

TEST(a_number_is_never_asked_for)
{
	node_dial_name("127.0.0.1");
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(resolver_loop.asked, 0);
}

/* --- the path of a Unix socket ---------------------------------------------------------------------------------------- */

static const char *path_of(const struct fake_redis *f)
{
	return ((const struct sockaddr_un *)&f->address)->sun_path;
}

static void node_dial_path(struct fake_redis *f)
{
	struct upstream_address address = {.label = "a"};

	fake_redis_start(f, resolver_loop.base, false);
	address.path = path_of(f);
	if (!node_conf.path_us)
		node_conf.path_us = 20 * MSEC;
	node = node_new(&node_conf, 0, &address);
	resolver_loop_await(&ups, 1);
}

/* A server that starts unlinks the socket that is at its path. */
TEST(a_path_that_another_server_takes_over_is_left)
{
	struct fake_redis local = {0}, rival = {0};

	node_dial_path(&local);
	resolver_loop_run(100 * MSEC);
	ck_assert_uint_eq(downs, 0);
	fake_redis_start(&rival, resolver_loop.base, false);
	ck_assert_int_eq(rename(path_of(&rival), path_of(&local)), 0);
	resolver_loop_await(&moves, 1);
	ck_assert_msg(strstr(reason, "another server has taken over the path /") == reason, "%s", reason);
	resolver_loop_await(&ups, 2);
	ck_assert_uint_ge(rival.connections, 2);
	fake_redis_stop(&rival);
	fake_redis_stop(&local);
}

/* Who cannot connect does not know that nobody listens: to stay would let two daemons hold one lock. */
TEST(a_path_that_another_server_has_is_left_without_a_descriptor_to_try_it)
{
	struct rlimit before, none = {0};
	struct fake_redis local = {0}, rival = {0};

	node_dial_path(&local);
	fake_redis_start(&rival, resolver_loop.base, false);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	ck_assert_int_eq(rename(path_of(&rival), path_of(&local)), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	resolver_loop_await(&moves, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_msg(strstr(reason, "another server has taken over the path /") == reason, "%s", reason);
	fake_redis_stop(&rival);
	fake_redis_stop(&local);
}

/* Long before the next look: a vote that the former server gave now could outlast the quarantine of the other one. */
TEST(nothing_is_sent_to_a_server_whose_path_another_one_has)
{
	struct call call = {.kind = CALL_ACQUIRE, .name = SPAN("a"), .value = SPAN("v"), .px_ms = 1000};
	struct fake_redis local = {0}, rival = {0};
	unsigned asked;

	node_conf.path_us = 60 * SEC;
	node_dial_path(&local);
	fake_redis_start(&rival, resolver_loop.base, false);
	ck_assert_int_eq(rename(path_of(&rival), path_of(&local)), 0);
	asked = local.scripts;
	ck_assert(node_call(node, &call, 1));
	(void)node_flush(node, clock_boottime(), true);
	resolver_loop_await(&moves, 1);
	ck_assert_uint_eq(local.scripts, asked);
	fake_redis_stop(&rival);
	fake_redis_stop(&local);
}

TEST(a_path_that_is_gone_is_told_and_its_server_kept)
{
	struct fake_redis local = {0};
	char aside[128];

	node_dial_path(&local);
	(void)snprintf(aside, sizeof(aside), "%s.aside", path_of(&local));
	ck_assert_int_eq(rename(path_of(&local), aside), 0);
	resolver_loop_run(200 * MSEC);
	ck_assert_msg(strstr(trouble, "host: the path /") && strstr(trouble, " is gone: no other daemon can connect"), "%s", trouble);
	ck_assert_int_eq(rename(aside, path_of(&local)), 0);
	resolver_loop_run(200 * MSEC);
	ck_assert_str_eq(trouble, "");
	ck_assert_uint_eq(downs, 0);
	fake_redis_stop(&local);
}

/* What listened there has ended. */
TEST(a_path_that_has_a_dead_socket_is_told_and_its_server_kept)
{
	struct fake_redis local = {0}, rival = {0};
	char aside[128];

	node_dial_path(&local);
	(void)snprintf(aside, sizeof(aside), "%s.aside", path_of(&local));
	ck_assert_int_eq(rename(path_of(&local), aside), 0);
	fake_redis_start(&rival, resolver_loop.base, false);
	ck_assert_int_eq(link(path_of(&rival), path_of(&local)), 0);
	fake_redis_stop(&rival);
	resolver_loop_run(200 * MSEC);
	ck_assert_msg(strstr(trouble, " has another file: no other daemon can connect"), "%s", trouble);
	ck_assert_uint_eq(downs, 0);
	ck_assert_int_eq(unlink(aside), 0);
	fake_redis_stop(&local);
}

static void node_dial_tried_each(int64_t us)
{
	node_conf.redial_us = us;
	node_dial_name("127.0.0.1");
	resolver_loop_await(&ups, 1);
}

TEST(a_server_that_takes_no_new_connection_is_told_while_it_serves)
{
	node_dial_tried_each(60 * MSEC);
	fake.hands = "-NOAUTH Authentication required.\r\n";
	trouble_becomes("it takes no new connection: NOAUTH Authentication required.");
	fake.hands = NULL;
	trouble_becomes("");
	fake.hands = ""; /* it keeps silent */
	link_conf.connect_timeout_us = 30 * MSEC;
	trouble_becomes("it takes no new connection: handshake timed out");
	ck_assert_uint_eq(downs, 0);
	fake.hands = NULL;
	trouble_becomes("");
	fake.greeting = "-ERR max number of clients reached\r\n";
	trouble_becomes("it takes no new connection: ERR max number of clients reached");
	ck_assert_uint_eq(downs, 0);
	fake_redis_hang_up(&fake);
	fake.greeting = NULL;
	resolver_loop_await(&ups, 2);
	trouble[0] = '\0';
	resolver_loop_run(300 * MSEC);
	ck_assert_str_eq(trouble, "");
}

TEST(a_path_to_which_this_daemon_may_no_longer_connect_is_told)
{
	struct fake_redis local = {0};

	node_conf.redial_us = 60 * MSEC;
	node_dial_path(&local);
	ck_assert_int_eq(chmod(local.dir, 0755), 0);
	ck_assert_int_eq(chmod(path_of(&local), 0), 0);
	ck_assert_int_eq(getuid() == 0 ? seteuid(65534) : 0, 0);
	trouble_becomes("it takes no new connection: Permission denied");
	ck_assert_int_eq(getuid() == 0 ? seteuid(0) : 0, 0);
	ck_assert_int_eq(cause, DEFECT_SOCKET);
	ck_assert_uint_eq(downs, 0);
	fake_redis_stop(&local);
}

TEST(one_connection_that_is_not_taken_says_nothing)
{
	unsigned before;

	node_dial_tried_each(600 * MSEC);
	before = fake.connections;
	fake.hands = "-NOAUTH Authentication required.\r\n";
	resolver_loop_await(&fake.connections, before + 1);
	resolver_loop_run(30 * MSEC);
	fake.hands = NULL;
	resolver_loop_await(&fake.connections, before + 2);
	resolver_loop_run(100 * MSEC);
	ck_assert_str_eq(trouble, "");
	ck_assert_uint_eq(downs, 0);
}

TEST(a_node_can_be_freed_while_its_name_hangs)
{
	resolver_loop_hang();
	node_dial_name("redis.example");
	resolver_loop_await_asked(1);
	node_free(node);
	node = NULL;
	resolver_loop_go_on(1);
}
