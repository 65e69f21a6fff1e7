/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long while the daemon drains, or looks at all that it has: for STATS, COMPLETE, the journal. */
#include "tests/fixture/timed_story.h"

FIXTURE(.seconds = 60)

/* --- DRAIN --- */

static void drains(void)
{
	sessions_open(1, 101);
	holds_locks(1, 1024);
	says(1, "LOCK x");
	for (uint64_t k = 2; k <= 101; k++)
		says(k, "SUBSCRIBE");
	crowd_waits(2, 101, 250, "wait=1h");
	w.longest_ns = 0;
	says(1, "DRAIN");
	lone_service_pass(&w, SEC);
}

TEST(the_daemon_drains_a_crowd)
{
	measure(drains);
}

#define SESSIONS_MOST 60000

/* The outer layer looks 20 times a second whether the drain is over. */
static bool looks(void)
{
	int64_t begin = processor_ns();
	bool over = service_is_drained(w.service);

	lone_service_note(&w, processor_ns() - begin, "a look at the drain");
	return over;
}

/* Those that wait stand behind many that do not; the last one asks something that takes long. */
static void drains_many_sessions(void)
{
	struct event verified = {.kind = EVENT_VERIFIED, .verified.number = 1};
	unsigned most = 10;

	w.conf.users = true;
	service_reload(w.service, &w.conf);
	sessions_open(1, SESSIONS_MOST);
	says(1, "LOCK x");
	crowd_waits(SESSIONS_MOST - 2000, SESSIONS_MOST, 1, "wait=1h");
	w.longest_ns = 0;
	says(3, "DRAIN");
	lone_service_pass(&w, SEC);
	says(SESSIONS_MOST, "AUTH ann secret");
	says(1, "UNLOCK x");
	for (unsigned i = 0; i < 20; i++)
		ck_assert(!looks());
	ck_assert_int_eq(lone_service_step(&w, &verified), 0);
	while (!looks())
		ck_assert_uint_gt(--most, 0);
}

TEST(the_daemon_drains_many_sessions)
{
	measure(drains_many_sessions);
}

/* More wait for x than a step refuses, behind the readers of session 1. */
static void drains_while_readers_end(void (*readers_end)(void))
{
	sessions_open(1, 101);
	says(1, "HELLO 1 heartbeat=1s");
	for (unsigned i = 0; i < 1000; i++)
		says_number(1, "LOCK x mode=shared owner=o", i, "");
	crowd_waits(2, 101, 250, "wait=1h");
	w.longest_ns = 0;
	says(101, "DRAIN");
	readers_end();
	lone_service_pass(&w, SEC);
}

static void readers_quit(void)
{
	says(1, "QUIT");
}

static void readers_are_broken(void)
{
	says(101, "BREAK x");
}

static void readers_unlock(void)
{
	for (unsigned i = 0; i < 1000; i++)
		says_number(1, "UNLOCK x owner=o", i, "");
}

static void drains_while_readers_quit(void)
{
	drains_while_readers_end(readers_quit);
}

static void drains_while_readers_are_broken(void)
{
	drains_while_readers_end(readers_are_broken);
}

static void drains_while_readers_unlock(void)
{
	drains_while_readers_end(readers_unlock);
}

LOOP_TEST(readers_end_while_the_daemon_drains_a_crowd, 3)
{
	static void (*const story[])(void) = {drains_while_readers_quit, drains_while_readers_are_broken, drains_while_readers_unlock};

	measure(story[_i]);
}

/* --- all there is --- */

static void many_jobs_are_renewed(void)
{
	sessions_open(1, 6);
	w.conf.limits.jobs = 20000;
	w.conf.limits.locks = 20000;
	service_reload(w.service, &w.conf);
	for (uint64_t k = 2; k <= 6; k++)
		for (unsigned i = 0; i < 1000; i++)
			says_number(k, "DEFER q payload", i, "");
	for (uint64_t k = 2; k <= 6; k++)
		for (unsigned i = 0; i < 1000; i++)
			says(k, "TAKE q");
	w.longest_ns = 0;
	says(1, "STATS all");
	says(1, "LIST queues");
	lone_service_pass(&w, 20 * SEC);
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(many_jobs_are_counted_and_renewed)
{
	measure(many_jobs_are_renewed);
}

/* All ask for as much as an answer can hold. */
static void long_names_are_listed(void)
{
	struct mallinfo2 before, meanwhile;
	char line[600], name[500];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	sessions_open(1, 200);
	for (unsigned i = 0; i < 4000; i++) {
		snprintf(line, sizeof(line), "LOCK %u%s", i * 37 % 4000, name);
		says(1 + i / 1000, line);
	}
	before = mallinfo2();
	w.longest_ns = 0;
	for (uint64_t k = 5; k <= 200; k++)
		says(k, "LIST limit=10000");
	lone_service_pass(&w, 200 * MSEC);
	meanwhile = mallinfo2();
	ck_assert_uint_lt(meanwhile.uordblks + meanwhile.hblkhd, before.uordblks + before.hblkhd + (48 << 20));
	lone_service_pass(&w, 200 * MSEC);
	for (uint64_t k = 5; k <= 200; k++)
		lone_service_gone(&w, k, GONE_HANGUP);
}

TEST(long_names_are_listed_to_many)
{
	measure(long_names_are_listed);
}

static void completes(void)
{
	sessions_open(1, 20);
	for (uint64_t k = 1; k <= 20; k++)
		holds_locks(k, 1000);
	w.longest_ns = 0;
	says(1, "COMPLETE");
	says(1, "COMPLETE s");
	says(1, "COMPLETE s7/99");
	says(1, "RECENT");
	says(1, "RECENT prefix=s1");
	says(1, "LIST locks");
	says(1, "LIST sessions");
	lone_service_pass(&w, SEC);
}

TEST(names_are_completed_beside_many)
{
	measure(completes);
}

static void restores(void)
{
	sessions_open(1, 10000);
	for (uint64_t k = 1; k <= 10000; k++) {
		says(k, "HELLO 1 grace=30s");
		holds_locks(k, 1);
	}
	w.longest_ns = 0;
	ck_assert(lone_service_restart(&w));
	lone_service_pass(&w, 40 * SEC);
}

TEST(a_journal_of_many_sessions_is_restored)
{
	measure(restores);
}

static void snapshot_is_taken(void)
{
	sessions_open(1, 40);
	for (uint64_t k = 1; k <= 40; k++) {
		says(k, "HELLO 1 grace=30s");
		holds_locks(k, 1000);
	}
	w.longest_ns = 0;
	while (lone_service_snapshot(&w))
		;
}

TEST(a_snapshot_of_the_journal_is_taken)
{
	measure(snapshot_is_taken);
}

/* The most groups that may be configured, each with two histograms. */
static void many_groups_are_told(void)
{
	char groups[64 * 70], *at = groups;

	for (unsigned i = 0; i < 64; i++)
		at += snprintf(at, 70, "%sthe-group-with-the-number-%u\tg%u/*", i > 0 ? "\n" : "", i, i);
	sessions_open(1, 1);
	w.conf.name_groups = groups;
	w.conf.limits.output = 16 << 20;
	service_reload(w.service, &w.conf);
	w.longest_ns = 0;
	says(1, "STATS all");
	w.conf.name_groups = NULL;
}

TEST(figures_of_many_groups_of_names_are_told)
{
	measure_within(many_groups_are_told, MOST_NS / 2);
}
