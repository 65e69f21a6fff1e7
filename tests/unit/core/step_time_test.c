/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, whatever crowds wait, watch, or wait for each other. */
#include "tests/fixture/timed_story.h"

/* --- crowds that wait for one name ------------------------------------------------------------------------------------ */

static void writers_follow(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 250, "wait=1h");
	w.longest_ns = 0;
	for (uint64_t k = 1; k < 20; k++) {
		says(k, "UNLOCK x");
		says(k, "PING");
	}
}

FIXTURE(.seconds = 60)

TEST(a_lock_goes_on_to_the_next_of_a_crowd)
{
	measure(writers_follow);
}

static void readers_come_in(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 250, "mode=shared wait=1h");
	w.longest_ns = 0;
	says(1, "UNLOCK x");
	lone_service_pass(&w, SEC / 10);
}

TEST(a_crowd_of_readers_comes_in)
{
	measure(readers_come_in);
}

static void crowd_gives_up(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 100, "wait=10s");
	w.longest_ns = 0;
	w.now = instant_add(w.now, 11 * SEC);
	lone_service_pass(&w, SEC);
}

TEST(a_crowd_gives_up_at_once)
{
	measure(crowd_gives_up);
}

static void priority_passes_crowd(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 250, "wait=1h");
	w.longest_ns = 0;
	for (uint64_t k = 2; k < 50; k++)
		says(k, "@p LOCK x wait=1h priority=9");
}

TEST(a_priority_passes_a_crowd)
{
	measure(priority_passes_crowd);
}

static void crowd_is_watched(void)
{
	sessions_open(1, 101);
	says(101, "WATCH");
	says(1, "LOCK x");
	crowd_waits(2, 100, 250, "wait=1h");
	w.longest_ns = 0;
	for (uint64_t k = 2; k < 50; k++)
		says(k, "@w LOCK x wait=1h");
}

TEST(a_crowd_grows_that_is_watched)
{
	measure(crowd_is_watched);
}

/* --- watchers --------------------------------------------------------------------------------------------------------- */

/* As many as those of one peer may be. */
static void many_watch(void)
{
	sessions_open(1, 257);
	for (uint64_t k = 2; k <= 257; k++)
		says_number(k, "WATCH x", 0, "");
	w.longest_ns = 0;
	for (unsigned i = 0; i < 20; i++) {
		says(1, "LOCK x0");
		says(1, "UNLOCK x0");
	}
}

TEST(many_sessions_watch)
{
	measure(many_watch);
}

/* Sessions 2 to 257 watch all names. */
static void watched_locks(void)
{
	sessions_open(1, 257);
	for (uint64_t k = 2; k <= 257; k++)
		says(k, "WATCH");
	for (unsigned i = 0; i < 1024; i++)
		says_number(1, "LOCK some/name/", i, "");
	w.longest_ns = 0;
}

static void watched_quits(void)
{
	watched_locks();
	says(1, "QUIT");
	lone_service_pass(&w, SEC);
}

TEST(a_session_with_many_locks_quits_that_many_watch)
{
	measure(watched_quits);
}

static void watched_ends(void)
{
	watched_locks();
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_with_many_locks_ends_that_many_watch)
{
	measure(watched_ends);
}

/* Sessions 2 to 64 read r0 all together, the others watch. */
static void watched_readers_lose(void)
{
	sessions_open(1, 320);
	for (uint64_t k = 65; k <= 320; k++)
		says(k, "WATCH");
	for (uint64_t k = 2; k <= 64; k++)
		for (unsigned i = 0; i < 32; i++)
			says_number(k, "LOCK r0 owner=o", i, " mode=shared");
	w.longest_ns = 0;
	says(1, "BREAK r0");
	lone_service_pass(&w, SEC);
}

TEST(readers_lose_a_name_that_many_watch)
{
	measure(watched_readers_lose);
}

static void watched_readers_come_in(void)
{
	sessions_open(1, 320);
	for (uint64_t k = 65; k <= 320; k++)
		says(k, "WATCH");
	says(1, "LOCK x");
	crowd_waits(2, 64, 32, "mode=shared wait=1h");
	lone_service_pass(&w, SEC);
	w.longest_ns = 0;
	says(1, "UNLOCK x");
	lone_service_pass(&w, SEC);
}

TEST(a_crowd_of_readers_comes_in_that_many_watch)
{
	measure(watched_readers_come_in);
}

/* --- subscribers ------------------------------------------------------------------------------------------------------ */

/* Sessions 2 to 64 read each of so many names, all that may, and have subscribed. */
static void readers_subscribe(unsigned names, unsigned owners)
{
	sessions_open(1, 65);
	for (uint64_t k = 2; k <= 64; k++) {
		says(k, "SUBSCRIBE");
		for (unsigned n = 0; n < names; n++)
			for (unsigned i = 0; i < owners; i++) {
				char line[100];

				snprintf(line, sizeof(line), "LOCK r%u mode=shared owner=o%u", n, i);
				says(k, line);
			}
	}
	w.longest_ns = 0;
}

static void writer_asks(void)
{
	readers_subscribe(1, 200);
	for (unsigned i = 0; i < 20; i++) {
		says_number(1, "@", i, " LOCK r0 wait=1h");
		says_number(1, "CANCEL @", i, "");
		w.now = instant_add(w.now, SEC / 5);
		lone_service_pass(&w, SEC / 5);
	}
}

TEST(a_writer_asks_many_readers_that_have_subscribed)
{
	measure(writer_asks);
}

static void writer_asks_for_all(void)
{
	char line[1500] = "LOCKALL";

	for (unsigned i = 0; i < 64; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " r%u", i);
	readers_subscribe(64, 16);
	for (unsigned i = 0; i < 5; i++) {
		char whole[1600];
		size_t n = (size_t)snprintf(whole, sizeof(whole), "@%u %s wait=1h", i, line);

		ck_assert_int_eq(lone_service_line(&w, 1, whole, n), 0);
		says_number(1, "CANCEL @", i, "");
		w.now = instant_add(w.now, SEC / 5);
		lone_service_pass(&w, SEC / 5);
	}
}

TEST(a_writer_asks_for_all_names_of_many_readers)
{
	measure(writer_asks_for_all);
}

/* --- a crowd that comes while the stores are asked --------------------------------------------------------------------- */

struct crowd {
	const char *asks;
	unsigned each; /* of 30 sessions */
};

static const struct crowd crowds[] = {
	{"LOCK x", 1000},
	{"LOCK x mode=shared", 1000},
	{"LOCK x wait=10ms", 1000},
	{"LOCK x wait=10ms mode=shared", 1000},
	{"LOCKALL x y", 500},
	{"LOCKANY x y", 700},
	{"ACQUIRE s limit=2", 1000},
	{"TAKE q", 270},
};
static const struct crowd *crowd;

/* A store that takes a moment: all these requests wait for one answer. */
static void crowd_comes_during_a_round(void)
{
	char request[80];

	snprintf(request, sizeof(request), " %s", crowd->asks);
	w.has_two_peers = true;
	sessions_open(1, 30);
	w.longest_ns = 0;
	lone_service_slow(&w, true);
	for (uint64_t k = 1; k <= 30; k++)
		for (unsigned i = 0; i < crowd->each; i++)
			says_number(k, "@", i, request);
	lone_service_pass(&w, 20 * MSEC);
	while (!TAILQ_EMPTY(&w.held))
		lone_service_answer(&w);
	lone_service_slow(&w, false);
	lone_service_pass(&w, 2 * SEC);
	ck_assert_str_ne(heard, "");
}

LOOP_TEST(a_crowd_asks_during_one_round, sizeof(crowds) / sizeof(crowds[0]))
{
	crowd = &crowds[_i];
	measure(crowd_comes_during_a_round);
}

/* --- owners that wait for each other ---------------------------------------------------------------------------------- */

static void owners_wait(void)
{
	sessions_open(1, 4);
	for (uint64_t k = 1; k <= 4; k++)
		for (unsigned i = 0; i < 125; i++) {
			says_number(k, "ACQUIRE p limit=500 owner=", i, "");
			says_number(k, "ACQUIRE q limit=500 owner=", i, "");
		}
	w.longest_ns = 0;
	for (uint64_t k = 1; k <= 4; k++)
		for (unsigned i = 0; i < 125; i++) {
			char line[100];

			snprintf(line, sizeof(line), "@%u ACQUIRE %s limit=500 owner=%u wait=1h", i, i % 2 ? "q" : "p", i);
			says(k, line);
		}
	for (unsigned i = 0; i < 10; i++)
		lone_service_pass(&w, SEC);
}

TEST(many_owners_wait_for_each_other)
{
	measure(owners_wait);
}

/* Each of 20 sessions has a name, and ten LOCKALLs that wait for that of the next one, besides 63 others: there are 10^20 ways to the last. */
static void lockalls_wait_in_a_row(void)
{
	char line[600];

	sessions_open(1, 22);
	for (unsigned k = 1; k <= 21; k++)
		says_number(k, "LOCK h", k, "");
	for (unsigned k = 1; k <= 20; k++)
		for (unsigned i = 0; i < 10; i++) {
			size_t n = (size_t)snprintf(line, sizeof(line), "@%u LOCKALL", i);

			for (unsigned j = 0; j < 63; j++)
				n += (size_t)snprintf(line + n, sizeof(line) - n, " f%u", j);
			snprintf(line + n, sizeof(line) - n, " h%u wait=1h", k + 1);
			says(k, line);
		}
	says(22, "LOCK z");
	w.longest_ns = 0;
	says(22, "LOCK h1 wait=1h");
}

TEST(an_owner_asks_for_the_first_of_a_row)
{
	measure(lockalls_wait_in_a_row);
}
