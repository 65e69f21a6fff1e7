/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/redis/node.c, where a sentinel tells the address: whatever happens in whatever order, a server that takes the place of another one is told as such
 * before it is up. Who is told gives up the votes of the former.
 */
#include "daemon/base/clock.h"
#include "daemon/base/rng.h"
#include "daemon/redis/node_parts.h"
#include "tests/fixture/fake_redis.h"
#include "tests/fixture/resolver_loop.h"

#include <check.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS 3
#define NONE    SERVERS

static struct fake_redis watch, server[SERVERS]; /* the last one has the port of the first one, at 127.0.0.2 */
static struct upstream_host at;
static struct link_conf link_conf;
static struct sentinel_conf sentinel_conf;
static struct upstream_sink sink;
static struct node_conf node_conf;
static struct node *node;
static struct rng rng;
static char where[64];
static unsigned restarts;
static char run_id[SERVERS][16];
/* What core knows. */
static unsigned voter, ups, moves; /* whose votes count; NONE: nobody's */
static char address[300], voter_run_id[48];

static unsigned server_of(const struct endpoint *e)
{
	for (unsigned i = 0; i < SERVERS; i++)
		if (!memcmp(&server[i].address, &e->name, sizeof(struct sockaddr_in)))
			return i;
	ck_abort_msg("an address of no server");
}

static void on_up(void *context, unsigned index, const char *told)
{
	unsigned now = server_of(&node->dialled);

	(void)context, (void)index;
	ck_assert_msg(voter == NONE || voter == now, "server %u is up in the place of %u", now, voter);
	voter = now;
	ups++;
	(void)snprintf(address, sizeof(address), "%s", told);
	(void)snprintf(voter_run_id, sizeof(voter_run_id), "%s", node->known);
	node->up_since = (struct instant){0}; /* the next attempt follows at once */
}

static void on_down(void *context, unsigned index, enum defect defect, const char *why, const char *moved)
{
	(void)context, (void)index, (void)defect, (void)why;
	if (!*moved)
		return;
	moves++;
	voter = NONE;
	*address = '\0';
}

static void on_unwatched(void *context, unsigned index, enum defect defect, const char *why, const char *told)
{
	(void)context, (void)index, (void)defect, (void)why;
	if (*told)
		(void)snprintf(address, sizeof(address), "%s", told);
}

static void on_answer(void *context, const struct answer *a)
{
	(void)context, (void)a;
}

static void master_is_at(unsigned i, const char *host)
{
	char port[8];

	(void)snprintf(port, sizeof(port), "%u", ntohs(((struct sockaddr_in *)&server[i].address)->sin_port));
	(void)snprintf(where, sizeof(where), "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(host), host, strlen(port), port);
	watch.where = where;
}

static void names_lead_to(const char *first, const char *second)
{
	resolver_loop_fail(0);
	resolver_loop_host(1, NULL);
	resolver_loop_host(0, first);
	resolver_loop_host(1, second);
}

static void server_restarts(unsigned i)
{
	(void)snprintf(run_id[i], sizeof(run_id[i]), "$4\r\n%c%03u\r\n", 'a' + i, ++restarts % 1000);
	server[i].run_id = run_id[i];
	fake_redis_hang_up(&server[i]);
}

static void all_hang_up(void)
{
	for (unsigned i = 0; i < SERVERS; i++)
		fake_redis_hang_up(&server[i]);
}

/* Restarts in place, with what core hands over. */
static void node_restarts(void)
{
	struct upstream_address conf = {.label = "sentinel:locks", .master = "locks", .sentinel = &at, .sentinels = 1, .run_id = voter_run_id};
	char *colon = strrchr(address, ':');

	node_free(node);
	if (colon) {
		*colon = '\0';
		conf.host = address;
		conf.port = (uint16_t)strtoul(colon + 1, NULL, 10);
	}
	conf.answered_at = clock_boottime();
	node = node_new(&node_conf, 0, &conf);
	if (colon)
		*colon = ':';
}

static void setup(void)
{
	static const uint64_t seed[2];

	resolver_loop_open();
	rng_init(&rng, seed);
	fake_redis_start(&watch, resolver_loop.base, true);
	fake_redis_start(&server[0], resolver_loop.base, true);
	fake_redis_start(&server[1], resolver_loop.base, true);
	fake_redis_start_beside(&server[2], &server[0], 0x7f000002);
	for (unsigned i = 0; i < SERVERS; i++)
		server_restarts(i);
	at = (struct upstream_host){"127.0.0.1", ntohs(((struct sockaddr_in *)&watch.address)->sin_port)};
	link_conf = (struct link_conf){.connect_timeout_us = 5 * SEC, .stall_us = 5 * SEC, .ping_us = 5 * SEC};
	script_keys_init(&link_conf.stream.keys, "lock:", SEC, 0, "");
	sink = (struct upstream_sink){.up = on_up, .down = on_down, .answer = on_answer, .unwatched = on_unwatched};
	sentinel_conf =
		(struct sentinel_conf){.base = resolver_loop.base, .resolver = resolver_loop.resolver, .timeout_us = 5 * SEC, .poll_us = 2 * MSEC};
	node_conf = (struct node_conf){.base = resolver_loop.base, .link = &link_conf, .resolver = resolver_loop.resolver, .sentinel = &sentinel_conf,
	                               .rng = &rng, .links = 2, .sink = &sink, .redial_us = 60 * SEC, .reuse_us = 60 * SEC};
	voter = NONE;
	*address = *voter_run_id = '\0';
}

static void teardown(void)
{
	node_free(node);
	script_keys_release(&link_conf.stream.keys);
	fake_redis_stop(&watch);
	for (unsigned i = 0; i < SERVERS; i++)
		fake_redis_stop(&server[i]);
	resolver_loop_close();
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

static void is_up_at(unsigned i)
{
	for (unsigned k = 0; k < 500 && voter != i; k++)
		resolver_loop_run(10 * MSEC);
	ck_assert_uint_eq(voter, i);
}

static void begins_at_name(void)
{
	names_lead_to("127.0.0.1", NULL);
	master_is_at(0, "redis.example");
	node_restarts();
	is_up_at(0);
}

/* 1: the name leads to the former one as well; 2: which does not tell its run id, nor does the next. */
LOOP_TEST(the_same_name_that_leads_to_another_server_is_another_master, 3)
{
	if (_i == 2)
		server[0].run_id = server[2].run_id = NULL;
	begins_at_name();
	names_lead_to("127.0.0.2", _i == 1 ? "127.0.0.1" : NULL);
	fake_redis_hang_up(&server[0]);
	is_up_at(2);
	ck_assert_uint_eq(moves, 1);
}

TEST(after_a_restart_the_same_name_that_leads_to_another_server_is_another_master)
{
	begins_at_name();
	names_lead_to("127.0.0.2", NULL);
	node_restarts();
	is_up_at(2);
	ck_assert_uint_eq(moves, 1);
}

/* What it forgot its marker tells. 1: the daemon was restarted meanwhile; 2: it does not tell its run id any more. */
LOOP_TEST(a_server_that_was_restarted_is_no_other_master, 3)
{
	master_is_at(0, "127.0.0.1");
	node_restarts();
	is_up_at(0);
	server_restarts(0);
	if (_i == 2)
		server[0].run_id = NULL;
	if (_i == 1)
		node_restarts();
	resolver_loop_await(&ups, 2);
	ck_assert_uint_eq(moves, 0);
}

TEST(the_same_server_at_a_further_address_of_its_name_is_no_other_master)
{
	begins_at_name();
	server[2].run_id = server[0].run_id;
	names_lead_to("127.0.0.2", NULL);
	fake_redis_hang_up(&server[0]);
	resolver_loop_await(&ups, 1);
	voter = 2; /* it is the same */
	resolver_loop_await(&ups, 2);
	ck_assert_uint_eq(moves, 0);
}

/* Names take their time from the first such order on: each that follows lets those through that wait. */
static void names_hang(void)
{
	static bool hang;

	if (hang)
		resolver_loop_go_on(8);
	else
		resolver_loop_hang();
	hang = true;
}

static void happens(unsigned what)
{
	switch (what) {
	case 0:
		master_is_at(0, "127.0.0.1");
		break;
	case 1:
		master_is_at(1, "127.0.0.1");
		break;
	case 2:
		master_is_at(0, "redis.example");
		break;
	case 3:
		master_is_at(0, "other.example");
		break;
	case 4:
		master_is_at(1, "redis.example");
		break;
	case 5:
		watch.where = "*-1\r\n";
		break;
	case 6:
		names_lead_to("127.0.0.1", NULL);
		break;
	case 7:
		names_lead_to("127.0.0.2", NULL);
		break;
	case 8:
		names_lead_to("127.0.0.2", "127.0.0.1");
		break;
	case 9:
		resolver_loop_fail(EAI_AGAIN);
		break;
	case 10:
		server_restarts(voter == NONE ? 0 : voter);
		break;
	case 11:
		for (unsigned i = 0; i < SERVERS; i++)
			server[i].run_id = server[i].run_id ? NULL : run_id[i];
		break;
	case 12:
	case 13:
		node_restarts();
		break;
	case 14:
	case 15:
		names_hang();
		break;
	default:
		all_hang_up();
	}
}

/* on_up sees that none takes the place of another one untold. */
LOOP_TEST(whatever_happens_another_server_is_told, 8)
{
	const uint64_t seed[2] = {(uint64_t)_i, 1};
	struct rng dice;

	rng_init(&dice, seed);
	begins_at_name();
	for (unsigned i = 0; i < 150; i++) {
		happens((unsigned)rng_below(&dice, 20));
		backoff_reset(&node->backoff);
		resolver_loop_run((int64_t)rng_below(&dice, 4) * 4 * MSEC);
	}
	names_lead_to("127.0.0.1", NULL);
	master_is_at(1, "127.0.0.1");
	is_up_at(1);
	ck_assert_uint_ge(ups, 5);
	ck_assert_uint_ge(moves, 3);
}
