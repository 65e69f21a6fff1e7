/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/wait.c: tickets, the places of daemons in the queue for a name. */
#include "daemon/core/lock/lease.h"
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ticket {
	char text[128];
};

/* The ticket of the last request for a lock that any daemon sent to store 0. */
static struct ticket last_ticket(void)
{
	struct span span = cluster.node[0].last[CALL_ACQUIRE].call.ticket;
	struct ticket ticket;

	ck_assert_uint_gt(span.n, 17);
	snprintf(ticket.text, sizeof(ticket.text), "%.*s", (int)span.n, span.p);
	return ticket;
}

/* Daemon 1 asks, and 50 ms later daemon 0, which has the lock and hands it to nobody. Daemon 0 queues after it has released the lock. */
static void two_ask_one_after_the_other(void)
{
	struct ticket first;

	passes(2 * SEC);
	session_opens(2, 1);
	says(1, "LOCK a ttl=9s");
	hears(1, "OK *");
	says(2, "LOCK a wait=1m");
	first = last_ticket();
	passes(50 * MSEC);
	says(3, "LOCK a wait=1m");
	passes(50 * MSEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(3, "OK *");
	ck_assert_str_lt(first.text, last_ticket().text);
	ignores(2);
}

FIXTURE(.teardown = cluster_close)

TEST(the_first_request_has_the_smaller_ticket_though_a_fence_is_ahead_of_every_clock)
{
	cluster_begin(3); /* the join has lifted the fences */
	daemon_starts(1);
	two_ask_one_after_the_other();
}

/* One store's clock is ahead, another's is behind. */
TEST(stores_whose_clocks_differ_do_not_change_the_order)
{
	cluster_open(3);
	cluster.node[0].clock_us = 200 * MSEC;
	cluster.node[1].clock_us = -200 * MSEC;
	daemon_starts(0);
	daemon_starts(1);
	passes(2 * SEC);
	two_ask_one_after_the_other();
}

TEST(a_ticket_is_a_moment_of_the_stores_clock)
{
	cluster_begin(1);
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "LOCK b wait=1m");
	hears(2, "OK *");
	ck_assert_int_eq(strncmp(last_ticket().text, "1700000", 7), 0);
}

/* The clocks of the stores are the same for all daemons, whatever time each daemon has itself. */
TEST(a_ticket_is_drawn_from_the_clocks_of_the_stores_and_not_from_ours)
{
	cluster_open(3);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = 40 * SEC;
	daemon_starts(0);
	passes(11 * SEC);
	says(1, "LOCK a wait=1m");
	hears(1, "OK *");
	ck_assert_int_eq(strtoll(last_ticket().text, NULL, 10) / SEC, (CLUSTER_WALL_US + cluster.now.us + 40 * SEC) / SEC);
}

/* The answers lay unread while the daemon stood still, so they show the clocks of the stores only to within the length of the stop. */
TEST(a_stop_before_the_clocks_of_the_stores_were_known_makes_no_ticket_older)
{
	int64_t asked_us;

	cluster_begin(3);
	daemon_ends(0);
	all_feel(MOOD_TARDY);
	daemon_starts(0);
	jumps(10 * SEC);
	says(1, "LOCK a wait=1m");
	asked_us = CLUSTER_WALL_US + cluster.now.us;
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(1, "OK name=a *");
	ck_assert_int_lt(llabs(strtoll(last_ticket().text, NULL, 10) - asked_us), cluster.conf.timeout_us);
}

/* Session 1 says this request for a, which 2 holds at another daemon. Returns the ticket. */
static struct ticket waits_behind_another_daemon(const char *request)
{
	two_daemons(3);
	says(2, "LOCK a");
	hears(2, "OK *");
	says(1, "%s", request);
	return last_ticket();
}

/* Many answers lie unread while the daemon stands still. Each tells less of the clock than was known, and adds what is too little to be noticed. */
TEST(a_ticket_stays_until_it_is_certain_that_the_clocks_were_set_back)
{
	struct ticket before;

	two_daemons(1);
	says(2, "LOCK a renew=no ttl=30s");
	hears(2, "OK *");
	says(1, "LOCK a wait=1m");
	before = last_ticket();
	all_feel(MOOD_TARDY);
	for (unsigned i = 0; i < 120; i++)
		says(1, "@t%u LOCK n%u", i, i);
	jumps(8 * SEC);
	all_feel(MOOD_WELL);
	ignores(1);
	passes(3 * SEC);
	ck_assert_str_eq(last_ticket().text, before.text);
	ignores(1);
	ignores(2);
}

TEST(a_daemon_without_a_quorum_leaves_the_queue_and_returns_with_the_same_ticket)
{
	struct ticket ticket;
	unsigned before;

	ticket = waits_behind_another_daemon("LOCK a wait=1m");
	before = cluster.node[0].count[CALL_WITHDRAW];
	falls(1);
	falls(2);
	passes(1500 * MSEC);
	ck_assert_uint_eq(cluster.node[0].count[CALL_WITHDRAW], before + 1);
	ck_assert_int_eq(strncmp(cluster.node[0].last[CALL_WITHDRAW].ticket, ticket.text, strlen(ticket.text)), 0);
	comes(1);
	comes(2);
	passes(1500 * MSEC);
	ck_assert_str_eq(last_ticket().text, ticket.text);
	says(2, "UNLOCK a");
	ignores(2);
	passes(2 * SEC);
	hears(1, "OK name=a *");
}

/* Otherwise any request before the clocks have caught up would overtake it. */
TEST(a_waiter_whose_clocks_are_set_back_gets_a_ticket_by_the_new_time)
{
	struct ticket before, after;
	unsigned left;

	before = waits_behind_another_daemon("LOCK a wait=2m");
	left = cluster.node[0].count[CALL_WITHDRAW];
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = -3600 * SEC;
	passes(3 * SEC);
	after = last_ticket();
	ck_assert_int_eq((strtoll(before.text, NULL, 10) - strtoll(after.text, NULL, 10) + SEC / 2) / SEC, 3600);
	ck_assert_uint_eq(cluster.node[0].count[CALL_WITHDRAW], left + 1);
	ck_assert_int_eq(strncmp(cluster.node[0].last[CALL_WITHDRAW].ticket, before.text, strlen(before.text)), 0);
	/* It stays so: a moment later, and when they are right again. */
	passes(5 * SEC);
	ck_assert_str_eq(last_ticket().text, after.text);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = 0;
	passes(90 * SEC);
	ck_assert_str_eq(last_ticket().text, after.text);
	ignores(1);
	ignores(2);
}

/* A round for a request that does not wait is under way, and shows no ticket, when the first waiter comes. */
TEST(a_waiter_that_comes_during_a_round_without_a_ticket_is_queued_at_once)
{
	two_daemons(1);
	says(2, "LOCK a");
	hears(2, "OK *");
	feels(0, MOOD_SILENT);
	says(1, "@now LOCK a");
	says(1, "@later LOCK a wait=1m");
	ck_assert_uint_eq(cluster.node[0].last[CALL_ACQUIRE].call.ticket.n, 0);
	feels(0, MOOD_WELL);
	hears(1, "@now BUSY *");
	ck_assert_uint_gt(cluster.node[0].last[CALL_ACQUIRE].call.ticket.n, 0);
	ignores(2);
}

static int64_t us_of(struct ticket ticket)
{
	return strtoll(ticket.text, NULL, 10);
}

/* Otherwise it would overtake those of other daemons that came before it. */
TEST(who_comes_when_the_last_waiter_has_left_during_a_round_has_a_place_of_its_own)
{
	struct ticket left = waits_behind_another_daemon("@first LOCK a wait=1m");
	unsigned asked, withdrawn = cluster.node[0].count[CALL_WITHDRAW];

	passes(10 * SEC);
	asked = cluster.node[0].count[CALL_ACQUIRE];
	all_feel(MOOD_SILENT);
	while (cluster.node[0].count[CALL_ACQUIRE] == asked)
		passes(MSEC);
	says(1, "CANCEL @first");
	hears(1, "OK");
	says(1, "LOCK a wait=1m");
	all_feel(MOOD_WELL);
	passes(SEC);
	ck_assert_uint_eq(cluster.node[0].count[CALL_WITHDRAW], withdrawn + 1);
	ck_assert_int_eq(strncmp(cluster.node[0].last[CALL_WITHDRAW].ticket, left.text, strlen(left.text)), 0);
	ck_assert_int_gt(us_of(last_ticket()), us_of(left) + 9 * SEC);
	ignores(1);
	ignores(2);
}

/* Session 3 does not wait, and asks on while the waiter leaves. */
TEST(a_waiter_that_comes_behind_a_request_without_wait_has_no_place_of_one_that_left_before)
{
	struct ticket left = waits_behind_another_daemon("@first LOCK a wait=1m");
	unsigned asked;

	passes(10 * SEC);
	asked = cluster.node[0].count[CALL_ACQUIRE];
	all_feel(MOOD_SILENT);
	while (cluster.node[0].count[CALL_ACQUIRE] == asked)
		passes(MSEC);
	says(3, "LOCK a");
	says(1, "CANCEL @first");
	hears(1, "OK");
	says(1, "LOCK a wait=1m");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(3, "BUSY *");
	ck_assert_int_gt(us_of(last_ticket()), us_of(left) + 9 * SEC);
	ignores(1);
	ignores(2);
}

/* The votes of the first round are split, and the second is of both. */
TEST(a_round_of_a_lock_without_wait_shows_the_ticket_of_the_waiter_behind_it)
{
	unsigned before[3], shown = 0;

	cluster_begin(3);
	key_is_overwritten(0, "a", "0123456789abcdef.x:1:00", 200 * MSEC);
	key_is_overwritten(1, "a", "0123456789abcdef.y:1:00", 200 * MSEC);
	all_feel(MOOD_SILENT);
	says(1, "@now LOCK a");
	says(1, "@later LOCK a wait=1m owner=2");
	all_feel(MOOD_WELL);
	hears_nothing(1);
	for (unsigned i = 0; i < 3; i++)
		before[i] = cluster.node[i].count[CALL_ACQUIRE];
	all_feel(MOOD_SILENT);
	passes(20 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		if (cluster.node[i].count[CALL_ACQUIRE] > before[i])
			shown += cluster.node[i].last[CALL_ACQUIRE].call.ticket.n > 0;
	all_feel(MOOD_WELL);
	ck_assert_uint_gt(shown, 0);
	passes(SEC);
	ignores(1);
}

/* A key that another daemon kept ends in this very millisecond. "0 ms" is no reason to wait for the next poll. */
TEST(a_key_that_ends_within_the_millisecond_is_asked_for_again_at_once)
{
	cluster_begin(3);
	passes(2 * SEC);
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "0123456789abcdef.db3:7:00ff", 5 * MSEC);
	while (key_ttl_us(0, "a") >= MSEC)
		passes(100);
	says(1, "LOCK a wait=5s");
	hears_nothing(1);
	passes(5 * MSEC);
	hears(1, "OK name=a *");
}

TEST(a_waiter_that_comes_while_the_leading_node_is_asked_is_known_to_the_others)
{
	unsigned shown = 0;

	cluster_begin(3);
	key_is_overwritten(0, "a", "0123456789abcdef.x:1:00", MSEC);
	key_is_overwritten(1, "a", "0123456789abcdef.y:1:00", MSEC);
	says(1, "@now LOCK a");
	ck_assert_int_eq(figure(0, METRIC_SPLITS), 1);
	all_feel(MOOD_SILENT);
	passes(300); /* the pause after a split */
	says(1, "@later LOCK a wait=1m owner=2");
	passes(1500); /* the leading node is not waited for any longer */
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_gt(waiting_at(i), 0);
		shown += cluster.node[i].last[CALL_ACQUIRE].call.ticket.n > 0;
	}
	ck_assert_uint_eq(shown, 2);
	all_feel(MOOD_WELL);
	passes(SEC);
	ignores(1);
}

/* What an answer to a LOOK shows behind the holder. */
static struct ticket_seen ticket_seen_in(const char *found)
{
	static struct core core = {.daemon_id = "0123.me"};
	struct answer a = {.found = span_of(found)};
	struct ticket_seen seen = {0};

	ticket_seen_note(&core, &seen, &a);
	return seen;
}

TEST(what_is_no_ticket_is_not_taken_for_one)
{
	static const char *const odd[] = {"d.h:1", "d.h:1 ", "d.h:1 123", "d.h:1 x", "d.h:1 12-4:d.h", "d.h:1 12a4:d.h", "d.h:1 0:d.h",
	                                  "d.h:1 12345678901234567:d.h"};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		ck_assert_msg(!ticket_seen_in(odd[i]).us, "%s", odd[i]);
	ck_assert_int_eq(ticket_seen_in("d.h:1 12:0.one:1").us, 12);
	ck_assert_str_eq(ticket_seen_in("d.h:1 12:0.one:1").host, "one");
	ck_assert(ticket_seen_in("d.h:1 12:0123.me:1").own);
	cluster_open(1);
}
