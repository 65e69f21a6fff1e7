/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, however many leases are renewed, end or are lost at one moment, and however many readers one lease has. */
#include "tests/fixture/timed_story.h"

FIXTURE(.seconds = 60)

/* --- readers --- */

/* Sessions 2 to 17: as many readers as may be, and more who wait. */
static void crowd_reads(const char *fields)
{
	char after[100];

	snprintf(after, sizeof(after), " %s", fields);
	for (uint64_t k = 2; k <= 17; k++)
		for (unsigned i = 0; i < 640; i++)
			says_number(k, "LOCK x mode=shared owner=o", i, after);
}

static void readers_lose(void)
{
	sessions_open(1, 17);
	crowd_reads("");
	w.longest_ns = 0;
	says(1, "BREAK x");
	lone_service_pass(&w, SEC);
}

TEST(all_readers_of_a_name_are_told_that_it_is_lost)
{
	measure(readers_lose);
}

/* Many times: the clients acknowledge none of these losses. */
static void lose_as_readers(void)
{
	for (uint64_t from = 1000; from < 1010; from++) {
		sessions_open(from * 10, from * 10 + 3);
		for (uint64_t k = from * 10; k < from * 10 + 4; k++)
			for (unsigned i = 0; i < 1000; i++)
				says_number(k, "LOCK x mode=shared ttl=1s owner=o", i, "");
		says(1, "BREAK x");
		lone_service_pass(&w, 2 * SEC);
	}
}

static void readers_come_in_after_losses(void)
{
	char line[100];

	sessions_open(1, 18);
	lose_as_readers();
	says(18, "LOCK x");
	for (uint64_t k = 2; k <= 9; k++)
		for (unsigned i = 0; i < 500; i++) {
			snprintf(line, sizeof(line), "@%u LOCK x mode=shared owner=o%u wait=1h", i, i);
			says(k, line);
		}
	w.longest_ns = 0;
	says(18, "UNLOCK x");
	lone_service_pass(&w, SEC);
}

TEST(readers_come_in_beside_many_losses_of_the_name)
{
	measure(readers_come_in_after_losses);
}

/* --- leases --- */

/* Each has 2,000 leases and a short one. */
static void short_leases_are_counted(void)
{
	w.conf.limits.renewals = 20000;
	service_reload(w.service, &w.conf);
	sessions_open(1, 65);
	for (uint64_t k = 2; k <= 65; k++) {
		holds_locks(k, 2000);
		says_number(k, "LOCK r", (unsigned)k, " ttl=5s");
	}
	w.longest_ns = 0;
	for (unsigned i = 0; i < 10; i++) {
		lone_service_pass(&w, SEC / 5);
		says_number(1, "LOCK t", i, " ttl=5s");
	}
}

TEST(short_leases_of_sessions_with_many_are_counted)
{
	measure(short_leases_are_counted);
}

static void renews_at_once(void)
{
	sessions_open(1, 20);
	for (uint64_t k = 1; k <= 20; k++)
		holds_locks(k, 1000);
	w.longest_ns = 0;
	for (unsigned i = 0; i < 10; i++) {
		w.now = instant_add(w.now, 5 * SEC);
		lone_service_pass(&w, SEC);
	}
}

TEST(many_leases_are_renewed_at_one_moment)
{
	measure(renews_at_once);
}

static void ends_at_once(void)
{
	char line[100];

	sessions_open(1, 20);
	for (uint64_t k = 1; k <= 20; k++)
		for (unsigned i = 0; i < 1000; i++) {
			snprintf(line, sizeof(line), "LOCK s%u/%u ttl=10s renew=no", (unsigned)k, i);
			says(k, line);
		}
	w.longest_ns = 0;
	w.now = instant_add(w.now, 9 * SEC);
	lone_service_pass(&w, 2 * SEC);
}

TEST(many_leases_end_at_one_moment)
{
	measure(ends_at_once);
}

/* 10,000 leases of as many sessions as that takes. */
static void many_leases(void)
{
	sessions_open(1, 10);
	for (uint64_t k = 1; k <= 10; k++)
		holds_locks(k, 1000);
	lone_service_pass(&w, SEC);
	w.longest_ns = 0;
}

static void store_comes_back(void)
{
	many_leases();
	lone_service_store(&w, false);
	lone_service_pass(&w, 8 * SEC);
	lone_service_store(&w, true);
	lone_service_pass(&w, 5 * SEC);
	lone_service_store(&w, false);
	lone_service_pass(&w, 20 * SEC);
	lone_service_store(&w, true);
	lone_service_pass(&w, 5 * SEC);
}

TEST(the_store_of_many_leases_comes_back)
{
	measure(store_comes_back);
}

static void clock_jumps(void)
{
	many_leases();
	lone_service_jump(&w, 20 * SEC);
	says(2, "LOCK again");
	for (unsigned i = 0; i < 100; i++) {
		while (!TAILQ_EMPTY(&w.held))
			lone_service_answer(&w);
		lone_service_pass(&w, SEC / 50);
	}
	says(2, "CHECK s2/5");
	ck_assert_ptr_nonnull(strstr(heard, "ERR LOST"));
}

TEST(the_clock_of_the_store_of_many_leases_jumps)
{
	measure(clock_jumps);
}

/* They wait behind a lease that nobody renews. */
static void crowd_waits_for_a_loss(bool acknowledged)
{
	w.conf.limits.waiting = 16384;
	service_reload(w.service, &w.conf);
	sessions_open(1, 64);
	says(1, "LOCK x ttl=1s renew=no");
	crowd_waits(2, 63, 1000, "wait=1h");
	w.longest_ns = 0;
	lone_service_pass(&w, SEC - 20 * MSEC);
	ck_assert_msg(strstr(heard, "! LOST name=x") != NULL, "%s", heard);
	if (acknowledged)
		says(1, "UNLOCK x");
	lone_service_pass(&w, SEC);
}

static void lost_before_a_crowd(void)
{
	crowd_waits_for_a_loss(false);
}

static void acknowledged_before_a_crowd(void)
{
	crowd_waits_for_a_loss(true);
}

LOOP_TEST(a_lease_ends_for_which_a_crowd_waits, 2)
{
	static void (*const story[])(void) = {lost_before_a_crowd, acknowledged_before_a_crowd};

	measure(story[_i]);
}
