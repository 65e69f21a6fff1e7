/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/node.c, where a sentinel tells the address: two servers, one of which is the master. */
#include "daemon/base/clock.h"
#include "daemon/base/rng.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/node.h"
#include "tests/fixture/fake_redis.h"
#include "tests/fixture/resolver_loop.h"

#include <check.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define RUN_A   "$1\r\na\r\n"
#define RUN_B   "$1\r\nb\r\n"
#define REPLICA "$12\r\nrole:slave\r\n\r\n"

static struct fake_redis watch, server[2];
static struct upstream_host at;
static struct link_conf link_conf;
static struct sentinel_conf sentinel_conf;
static struct upstream_sink sink;
static struct node_conf node_conf;
static struct node *node;
static struct rng rng;
static unsigned ups, downs, moves, answers;
static unsigned ups_before; /* the latest move */
static enum defect defect_told, cause;
static char address[300], reason[512], move_reason[512], where[64], trouble[300];

static void on_up(void *context, unsigned index, const char *told)
{
	(void)context, (void)index;
	ups++;
	(void)snprintf(address, sizeof(address), "%s", told);
}

static void on_down(void *context, unsigned index, enum defect defect, const char *why, const char *moved)
{
	(void)context, (void)index;
	defect_told = defect;
	downs++;
	if (*moved) {
		moves++;
		ups_before = ups;
		(void)snprintf(move_reason, sizeof(move_reason), "%s", why);
	}
	(void)snprintf(reason, sizeof(reason), "%s", why);
}

static void on_unwatched(void *context, unsigned index, enum defect defect, const char *why, const char *told)
{
	(void)context, (void)index;
	cause = defect;
	(void)snprintf(trouble, sizeof(trouble), "%s", why);
	(void)snprintf(address, sizeof(address), "%s", told);
}

static void on_answer(void *context, const struct answer *a)
{
	(void)context, (void)a;
	answers++;
}

static uint16_t port_of(const struct fake_redis *f)
{
	return ntohs(((const struct sockaddr_in *)&f->address)->sin_port);
}

/* The sentinel calls this one the master, by this name. */
static void master_is_at(unsigned i, const char *host)
{
	char port[8];

	(void)snprintf(port, sizeof(port), "%u", port_of(&server[i]));
	(void)snprintf(where, sizeof(where), "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(host), host, strlen(port), port);
	watch.where = where;
}

static void master_is(unsigned i)
{
	master_is_at(i, "127.0.0.1");
}

static void is_called(unsigned i, const char *host)
{
	char expected[64];

	(void)snprintf(expected, sizeof(expected), "%s:%u", host, port_of(&server[i]));
	ck_assert_str_eq(address, expected);
}

static void is_at(unsigned i)
{
	is_called(i, "127.0.0.1");
}

static struct upstream_address node_address(void)
{
	return (struct upstream_address){.label = "sentinel:locks", .master = "locks", .sentinel = &at, .sentinels = 1};
}

static void node_make(void)
{
	const struct upstream_address conf = node_address();

	node = node_new(&node_conf, 0, &conf);
}

/* As after a restart in place: the process before used this server. */
static void node_make_that_recalls_at(unsigned i, const char *host, const char *run_id)
{
	struct upstream_address conf = node_address();

	conf.host = host;
	conf.port = port_of(&server[i]);
	conf.run_id = run_id;
	conf.answered_at = instant_add(clock_boottime(), -SEC);
	node = node_new(&node_conf, 0, &conf);
}

static void node_make_that_recalls(unsigned i, const char *run_id)
{
	node_make_that_recalls_at(i, "127.0.0.1", run_id);
}

static void setup(void)
{
	static const uint64_t seed[2];

	resolver_loop_open();
	rng_init(&rng, seed);
	fake_redis_start(&watch, resolver_loop.base, true);
	fake_redis_start(&server[0], resolver_loop.base, true);
	fake_redis_start(&server[1], resolver_loop.base, true);
	at = (struct upstream_host){"127.0.0.1", port_of(&watch)};
	link_conf = (struct link_conf){.connect_timeout_us = 5 * SEC, .stall_us = 5 * SEC, .ping_us = 5 * SEC};
	script_keys_init(&link_conf.stream.keys, "lock:", SEC, 0, "");
	sink = (struct upstream_sink){.up = on_up, .down = on_down, .answer = on_answer, .unwatched = on_unwatched};
	sentinel_conf =
		(struct sentinel_conf){.base = resolver_loop.base, .resolver = resolver_loop.resolver, .timeout_us = 5 * SEC, .poll_us = 30 * MSEC};
	node_conf = (struct node_conf){.base = resolver_loop.base, .link = &link_conf, .resolver = resolver_loop.resolver, .sentinel = &sentinel_conf,
	                               .rng = &rng, .links = 2, .sink = &sink, .redial_us = 60 * SEC,
	                               .reuse_us = 60 * SEC};
	master_is(0);
}

static void teardown(void)
{
	node_free(node);
	script_keys_release(&link_conf.stream.keys);
	fake_redis_stop(&watch);
	fake_redis_stop(&server[0]);
	fake_redis_stop(&server[1]);
	resolver_loop_close();
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(a_node_goes_where_the_sentinel_says)
{
	node_make();
	resolver_loop_await(&ups, 1);
	is_at(0);
	ck_assert_uint_eq(server[0].connections, 2);
	ck_assert_uint_eq(downs, 0);
}

TEST(a_node_asks_again_when_a_link_breaks)
{
	sentinel_conf.poll_us = 60 * SEC;
	node_make();
	resolver_loop_await(&ups, 1);
	master_is(1);
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&ups, 2);
	is_at(1);
	ck_assert_uint_eq(moves, 1);
	fake_redis_hang_up(&server[1]);
	resolver_loop_await(&ups, 3);
	ck_assert_uint_eq(moves, 1);
}

TEST(a_node_leaves_a_server_that_works_when_the_sentinel_names_another)
{
	node_make();
	resolver_loop_await(&ups, 1);
	master_is(1);
	resolver_loop_await(&ups, 2);
	is_at(1);
	ck_assert_uint_ge(moves, 1);
	ck_assert_ptr_nonnull(strstr(reason, "the sentinels name another master: 127.0.0.1:"));
}

TEST(a_replica_is_never_up)
{
	server[0].role = REPLICA;
	node_make();
	resolver_loop_await(&downs, 1);
	ck_assert_ptr_nonnull(strstr(reason, ", which the sentinels told: " FAILURE_REPLICA));
	resolver_loop_await(&watch.questions, 4);
	ck_assert_uint_eq(ups, 0);
	ck_assert_uint_ge(downs, 2);
	server[0].role = NULL;
	resolver_loop_await(&ups, 1);
}

/* It has no other address that anybody could look for. */
TEST(where_a_server_is_that_refuses_is_told)
{
	char expected[128];

	server[0].hands = "-NOAUTH Authentication required.\r\n";
	node_make();
	resolver_loop_await(&downs, 1);
	(void)snprintf(expected, sizeof(expected), "127.0.0.1:%u, which the sentinels told: NOAUTH Authentication required.", port_of(&server[0]));
	ck_assert_str_eq(reason, expected);
	ck_assert_int_eq(defect_told, DEFECT_AUTH);
	server[0].hands = "";
	(void)snprintf(expected, sizeof(expected), "127.0.0.1:%u, which the sentinels told: closed by the server during the handshake", port_of(&server[0]));
	fake_redis_hang_up(&server[0]);
	while (strcmp(reason, expected) != 0 && downs < 20) { /* who hangs up before it has read resets the connection */
		resolver_loop_run(20 * MSEC);
		fake_redis_hang_up(&server[0]);
	}
	ck_assert_str_eq(reason, expected);
	ck_assert_int_eq(defect_told, DEFECT_CLOSED);
	server[0].hands = NULL;
	resolver_loop_await(&ups, 1);
}

TEST(a_refusal_of_writes_leads_to_the_sentinel)
{
	struct call call = {.kind = CALL_ACQUIRE, .name = SPAN("a"), .value = SPAN("v"), .px_ms = 1000};

	sentinel_conf.poll_us = 60 * SEC;
	node_make();
	resolver_loop_await(&ups, 1);
	master_is(1);
	server[0].script = "-READONLY You can't write against a read only replica. script: x, on @user_script:1.\r\n";
	ck_assert(node_call(node, &call, 1));
	(void)node_flush(node, (struct instant){0}, true);
	resolver_loop_await(&answers, 1);
	resolver_loop_await(&ups, 2);
	is_at(1);
	ck_assert_uint_eq(moves, 1);
}

TEST(a_name_that_the_sentinel_tells_is_resolved)
{
	char expected[64];

	master_is_at(1, "redis.example");
	node_make();
	resolver_loop_await(&ups, 1);
	(void)snprintf(expected, sizeof(expected), "redis.example:%u", port_of(&server[1]));
	ck_assert_str_eq(address, expected);
	ck_assert_uint_eq(server[1].connections, 2);
	/* An address of before does not serve for another name. */
	resolver_loop_fail(-2);
	master_is_at(0, "other.example");
	while (!strstr(reason, "other.example: "))
		resolver_loop_await(&downs, downs + 1);
	ck_assert_uint_eq(server[0].connections, 0);
}

/* The sentinels, which agree all the time, do not make that unsaid. */
TEST(a_master_that_takes_no_new_connection_is_told_while_it_serves)
{
	sentinel_conf.poll_us = 10 * MSEC;
	node_conf.redial_us = 60 * MSEC;
	node_make();
	resolver_loop_await(&ups, 1);
	server[0].hands = "-NOAUTH Authentication required.\r\n";
	for (unsigned i = 0; i < 100 && !*trouble; i++)
		resolver_loop_run(20 * MSEC);
	for (unsigned i = 0; i < 10; i++) {
		resolver_loop_run(5 * MSEC);
		ck_assert_str_eq(trouble, "it takes no new connection: NOAUTH Authentication required.");
	}
	ck_assert_uint_eq(downs, 0);
	server[0].hands = NULL;
	resolver_loop_run(500 * MSEC);
	ck_assert_str_eq(trouble, "");
}

/* The connection to the sentinel has ended, too. */
TEST(a_daemon_without_a_descriptor_does_not_blame_the_sentinel)
{
	struct rlimit before, none = {0};

	node_conf.redial_us = 30 * MSEC;
	node_make();
	resolver_loop_await(&ups, 1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	fake_redis_hang_up(&watch);
	for (unsigned i = 0; i < 500 && cause != DEFECT_DESCRIPTORS; i++)
		resolver_loop_run(10 * MSEC);
	for (unsigned i = 0; i < 10; i++) {
		resolver_loop_run(20 * MSEC);
		ck_assert_int_eq(cause, DEFECT_DESCRIPTORS);
	}
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_uint_eq(downs, 0);
}

static void trouble_stays(const char *text)
{
	for (unsigned i = 0; i < 500 && strcmp(trouble, text) != 0; i++)
		resolver_loop_run(20 * MSEC);
	for (unsigned until = watch.questions + 6; watch.questions < until;) {
		ck_assert_str_eq(trouble, text);
		resolver_loop_await(&watch.questions, watch.questions + 1);
	}
}

/* What the sentinels say of the master, good or bad, does not make that unsaid. */
TEST(that_connections_lead_to_several_servers_stays_told)
{
	sentinel_conf.poll_us = 10 * MSEC;
	node_conf.redial_us = 60 * MSEC;
	server[0].run_id = RUN_A;
	node_make();
	resolver_loop_await(&ups, 1);
	trouble_stays("");
	server[0].run_id = RUN_B;
	trouble_stays("its connections lead to several servers, so each daemon may use another one: name each server itself");
	watch.where = "*-1\r\n";
	trouble_stays("its connections lead to several servers, so each daemon may use another one: name each server itself");
	ck_assert_uint_eq(downs, 0);
	master_is(0);
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&ups, 2);
	trouble_stays("");
}

TEST(without_a_word_of_a_sentinel_the_same_server_is_used_again)
{
	server[0].run_id = RUN_A;
	node_make();
	resolver_loop_await(&ups, 1);
	watch.where = "*-1\r\n";
	resolver_loop_run(100 * MSEC);
	ck_assert_uint_eq(downs, 0); /* it stays where it is */
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&ups, 2);
	is_at(0);
	server[1].run_id = RUN_B;
	master_is(1);
	resolver_loop_await(&ups, 3);
	is_at(1);
	ck_assert_uint_ge(moves, 1);
}

TEST(without_a_word_of_a_sentinel_no_other_server_is_used)
{
	server[0].run_id = RUN_A;
	node_make();
	resolver_loop_await(&ups, 1);
	watch.where = "*-1\r\n";
	server[0].run_id = RUN_B;
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&downs, 3);
	ck_assert_uint_ge(server[0].connections, 4);
	ck_assert_str_eq(reason, "no sentinel knows a master named locks");
	ck_assert_uint_eq(ups, 1);
	master_is(0);
	resolver_loop_await(&ups, 2);
}

/* Another one may have been promoted, and grant by now. */
TEST(without_a_word_of_a_sentinel_a_server_that_was_away_for_long_is_not_used)
{
	server[0].run_id = RUN_A;
	node_conf.reuse_us = 200 * MSEC;
	link_conf.connect_timeout_us = 20 * MSEC;
	node_make();
	resolver_loop_await(&ups, 1);
	watch.where = "*-1\r\n";
	server[0].hands = ""; /* it hangs */
	fake_redis_hang_up(&server[0]);
	resolver_loop_run(300 * MSEC);
	server[0].hands = NULL;
	resolver_loop_run(500 * MSEC);
	ck_assert_uint_eq(ups, 1);
	link_conf.connect_timeout_us = 5 * SEC;
	master_is(0);
	resolver_loop_await(&ups, 2);
}

/* The connection may break long after the server was lost: nothing was asked of it meanwhile. */
TEST(a_server_was_away_since_its_last_answer)
{
	server[0].run_id = RUN_A;
	node_conf.reuse_us = 200 * MSEC;
	node_make();
	resolver_loop_await(&ups, 1);
	watch.where = "*-1\r\n";
	resolver_loop_run(300 * MSEC);
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&downs, 3);
	ck_assert_uint_eq(ups, 1);
	master_is(0);
	resolver_loop_await(&ups, 2);
}

/* What they said last was that another one is the master. */
TEST(a_server_that_a_sentinel_has_replaced_is_not_used_again_while_the_sentinels_keep_silent)
{
	server[0].run_id = RUN_A;
	node_make();
	resolver_loop_await(&ups, 1);
	master_is(1);
	resolver_loop_await(&moves, 1);
	watch.where = "*-1\r\n";
	resolver_loop_await(&downs, 4);
	ck_assert_uint_eq(ups, 1);
	master_is(1);
	resolver_loop_await(&ups, 2);
	is_at(1);
}

TEST(without_a_word_of_a_sentinel_a_server_that_has_become_a_replica_is_not_used)
{
	server[0].run_id = RUN_A;
	node_make();
	resolver_loop_await(&ups, 1);
	watch.where = "*-1\r\n";
	server[0].role = REPLICA;
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&downs, 3);
	ck_assert_str_eq(reason, "no sentinel knows a master named locks");
	ck_assert_uint_eq(ups, 1);
}

TEST(a_server_that_tells_no_run_id_is_not_used_without_a_word_of_a_sentinel)
{
	node_make();
	resolver_loop_await(&ups, 1);
	watch.where = "*-1\r\n";
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&downs, 3);
	ck_assert_str_eq(reason, "no sentinel knows a master named locks");
	ck_assert_uint_eq(server[0].connections, 2);
	master_is(0);
	resolver_loop_await(&ups, 2);
}

TEST(after_a_restart_the_server_of_before_is_used_until_a_sentinel_names_another)
{
	server[0].run_id = RUN_A;
	watch.where = "*-1\r\n";
	node_make_that_recalls(0, "a");
	resolver_loop_await(&ups, 1);
	is_at(0);
	ck_assert_uint_eq(downs, 0);
	master_is(1);
	resolver_loop_await(&ups, 2);
	is_at(1);
	ck_assert_uint_ge(moves, 1);
}

TEST(after_a_restart_the_server_of_before_is_not_used_if_it_was_away_for_long)
{
	server[0].run_id = RUN_A;
	watch.where = "*-1\r\n";
	node_conf.reuse_us = SEC / 2;
	node_make_that_recalls(0, "a");
	resolver_loop_await(&downs, 2);
	ck_assert_uint_eq(ups, 0);
	master_is(0);
	resolver_loop_await(&ups, 1);
}

TEST(after_a_restart_another_server_at_the_address_of_before_is_not_used)
{
	server[0].run_id = RUN_A;
	watch.where = "*-1\r\n";
	node_make_that_recalls(0, "b");
	resolver_loop_await(&downs, 2);
	ck_assert_uint_eq(ups, 0);
	master_is(0);
	resolver_loop_await(&ups, 1);
}

TEST(after_a_restart_the_word_of_a_sentinel_counts_more_than_what_was_before)
{
	server[0].run_id = RUN_A;
	master_is(1);
	node_make_that_recalls(0, "a");
	resolver_loop_await(&ups, 1);
	is_at(1);
	ck_assert_uint_eq(moves, 1);
	ck_assert_uint_eq(server[0].connections, 0);
}

/* As after `announce-hostnames yes`: what is connected stays, and so does what its votes are worth. */
TEST(another_spelling_of_the_address_that_is_connected_is_no_other_master)
{
	node_make();
	resolver_loop_await(&ups, 1);
	resolver_loop_host(0, "127.0.0.2");
	resolver_loop_host(1, "127.0.0.1");
	master_is_at(0, "redis.example");
	resolver_loop_await_asked(1);
	resolver_loop_run(800 * MSEC);
	ck_assert_uint_eq(moves + downs, 0);
	ck_assert_uint_eq(ups, 1);
	is_called(0, "redis.example");
	master_is_at(0, "Redis.example");
	resolver_loop_await_asked(2);
	resolver_loop_run(100 * MSEC);
	master_is(0);
	resolver_loop_run(200 * MSEC);
	ck_assert_uint_eq(moves + downs, 0);
	resolver_loop_host(0, "127.0.0.1");
	master_is_at(1, "redis.example"); /* the same host, another port */
	resolver_loop_await(&ups, 2);
	ck_assert_uint_ge(moves, 1);
}

TEST(another_spelling_that_leads_elsewhere_is_another_master)
{
	node_make();
	resolver_loop_await(&ups, 1);
	resolver_loop_host(0, "127.0.0.2");
	master_is_at(0, "redis.example");
	resolver_loop_await(&moves, 1);
	ck_assert_ptr_nonnull(strstr(reason, "the sentinels name another master: redis.example:"));
}

TEST(another_spelling_that_is_not_resolved_in_time_counts_as_another_master)
{
	node_make();
	resolver_loop_await(&ups, 1);
	resolver_loop_hang();
	master_is_at(0, "redis.example");
	resolver_loop_await(&moves, 1);
	ck_assert_ptr_nonnull(strstr(move_reason, "the sentinels name an address that may be of another master: redis.example:"));
	resolver_loop_go_on(8);
}

/* The connection breaks, and then the sentinels name the server otherwise. */
TEST(another_spelling_of_the_address_that_was_connected_is_no_other_master)
{
	sentinel_conf.poll_us = 60 * SEC;
	node_make();
	resolver_loop_await(&ups, 1);
	master_is_at(0, "redis.example");
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&ups, 2);
	ck_assert_uint_eq(moves, 0);
	is_called(0, "redis.example");
}

TEST(after_a_restart_another_spelling_of_the_server_of_before_is_no_other_master)
{
	server[0].run_id = RUN_A;
	master_is_at(0, "redis.example");
	node_make_that_recalls(0, "a");
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(moves, 0);
	is_called(0, "redis.example");
}

/* Where the name led then is not known any more: the run id shows that it is the same server. */
TEST(after_a_restart_a_number_in_place_of_a_name_is_no_other_master)
{
	server[0].run_id = RUN_A;
	node_make_that_recalls_at(0, "redis.example", "a");
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(moves, 0);
	is_at(0);
	master_is_at(0, "redis.example"); /* from now on its address is known */
	resolver_loop_await_asked(1);
	resolver_loop_run(200 * MSEC);
	ck_assert_uint_eq(moves + downs, 0);
}

TEST(after_a_restart_another_server_with_a_number_in_place_of_a_name_is_another_master)
{
	server[0].run_id = RUN_B;
	node_make_that_recalls_at(0, "redis.example", "a");
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(moves, 1);
	ck_assert_uint_eq(ups_before, 0); /* no vote of it counts sooner */
	ck_assert_ptr_nonnull(strstr(reason, "the sentinels name another master: 127.0.0.1:"));
	is_at(0);
}

TEST(after_a_restart_a_server_that_tells_no_run_id_is_another_master_unless_it_is_named_as_before)
{
	node_make_that_recalls_at(0, "redis.example", "a");
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(moves, 1);
}

/* Others may hold at it what this daemon held at the former one. */
TEST(after_a_restart_another_spelling_of_what_cannot_be_reached_counts_as_another_master)
{
	server[0].run_id = RUN_A;
	server[0].greeting = "-ERR max number of clients reached\r\n";
	node_make_that_recalls_at(0, "redis.example", "a");
	resolver_loop_await(&moves, 1);
	resolver_loop_await(&downs, 4);
	ck_assert_uint_eq(moves, 1);
	ck_assert_ptr_nonnull(strstr(move_reason, "the sentinels name an address that may be of another master: 127.0.0.1:"));
	ck_assert_ptr_nonnull(strstr(reason, ", which the sentinels told: ERR max number of clients reached"));
	server[0].greeting = NULL;
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(moves, 1);
}

/* The name of before leads to another server by now, to which no vote was given. */
TEST(after_a_restart_what_was_dialled_in_vain_is_not_the_server_of_before)
{
	server[1].run_id = RUN_B;
	watch.where = "*-1\r\n";
	node_make_that_recalls_at(1, "redis.example", "a");
	resolver_loop_await(&downs, 2);
	ck_assert_uint_ge(server[1].connections, 1);
	ck_assert_uint_eq(ups + moves, 0);
	master_is(1);
	resolver_loop_await(&ups, 1);
	is_at(1);
	ck_assert_uint_eq(moves, 1);
}

/* Its address was too long to be handed over. */
TEST(after_a_restart_a_server_of_which_only_the_run_id_is_known_is_another_master_if_that_differs)
{
	struct upstream_address conf = node_address();

	conf.run_id = "a";
	conf.answered_at = clock_boottime();
	server[0].run_id = RUN_B;
	watch.where = "*-1\r\n";
	node = node_new(&node_conf, 0, &conf);
	resolver_loop_await(&downs, 2);
	ck_assert_str_eq(reason, "no sentinel knows a master named locks");
	ck_assert_uint_eq(moves, 0); /* they have named none */
	master_is(0);
	resolver_loop_await(&ups, 1);
	ck_assert_uint_eq(moves, 1);
}

TEST(a_host_that_sentinels_name_and_nobody_resolves_is_told_as_theirs)
{
	resolver_loop_fail(-2);
	master_is_at(0, "no.such.host");
	node_make();
	resolver_loop_await(&downs, 1);
	ck_assert_ptr_nonnull(strstr(reason, "which the sentinels told: no.such.host: "));
	ck_assert_int_eq(defect_told, DEFECT_SENTINEL);
}
