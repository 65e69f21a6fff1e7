/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, whatever a session has, and however many of them end, come back, ask or are told at one moment. */
#include "tests/fixture/timed_story.h"

/* Session k holds so many locks of its own. */
static void holds_locks(uint64_t k, unsigned locks)
{
	char line[100];

	for (unsigned i = 0; i < locks; i++) {
		snprintf(line, sizeof(line), "LOCK s%u/%u", (unsigned)k, i);
		says(k, line);
	}
}

/* Session k waits so many times, each for another owner: for one name, or for as many as session 1 holds. */
static void waits_often(uint64_t k, unsigned requests, unsigned names)
{
	char line[100];

	for (unsigned i = 0; i < requests; i++) {
		snprintf(line, sizeof(line), "@%u LOCK s1/%u wait=1h owner=o%u", i, i % names, i);
		says(k, line);
	}
}

/* --- a session that ends --------------------------------------------------------------------------------------------------- */

static void many_locks_end(void)
{
	sessions_open(1, 1);
	holds_locks(1, 1024);
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

FIXTURE(.seconds = 60)

TEST(a_session_with_many_locks_ends)
{
	measure(many_locks_end);
}

static void many_waits_end(void)
{
	sessions_open(1, 2);
	holds_locks(1, 1);
	waits_often(2, 4096, 1);
	w.longest_ns = 0;
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_with_many_waits_ends)
{
	measure(many_waits_end);
}

static void many_waits_for_many_end(void)
{
	sessions_open(1, 2);
	holds_locks(1, 1024);
	waits_often(2, 4096, 1024);
	w.longest_ns = 0;
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_that_waits_for_many_names_ends)
{
	measure(many_waits_for_many_end);
}

static void waited_for_ends(void)
{
	sessions_open(1, 2);
	holds_locks(1, 1024);
	waits_often(2, 4096, 1024);
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_ends_whose_locks_are_waited_for)
{
	measure(waited_for_ends);
}

static void killed(void)
{
	char line[100];

	sessions_open(1, 2);
	holds_locks(1, 512);
	heard[0] = '\0';
	says(2, "HELLO 1 grace=10s");
	snprintf(line, sizeof(line), "KILL %.20s", strstr(heard, "session=") ? strstr(heard, "session=") : "");
	line[strcspn(line + 5, " ") + 5] = '\0';
	holds_locks(2, 1024);
	waits_often(2, 4096, 512);
	w.longest_ns = 0;
	says(1, line);
	ck_assert_ptr_nonnull(strstr(heard, "reason=broken"));
	lone_service_pass(&w, SEC);
}

TEST(a_session_with_many_locks_and_waits_is_killed)
{
	measure(killed);
}

static void heartbeats_end(void)
{
	sessions_open(1, 100);
	for (uint64_t k = 1; k <= 100; k++) {
		says(k, "HELLO 1 heartbeat=2s");
		holds_locks(k, 60);
	}
	w.longest_ns = 0;
	w.now = instant_add(w.now, 3 * SEC);
	lone_service_pass(&w, 5 * SEC);
}

TEST(heartbeats_of_many_sessions_stop)
{
	measure(heartbeats_end);
}

/* Sessions 3 to 102 wait for what session 2 reads. */
static void reader_falls_silent(bool killed)
{
	char line[100];

	sessions_open(1, 102);
	heard[0] = '\0';
	says(2, "HELLO 1 heartbeat=2s");
	snprintf(line, sizeof(line), "KILL %.20s", strstr(heard, "session=") ? strstr(heard, "session=") : "");
	line[strcspn(line + 5, " ") + 5] = '\0';
	says(1, "LOCK x mode=shared");
	for (unsigned i = 0; i < 1024; i++)
		says_number(2, "LOCK x mode=shared owner=o", i, "");
	crowd_waits(3, 102, 250, "wait=1h");
	w.longest_ns = 0;
	if (killed)
		says(1, line);
	w.now = instant_add(w.now, 2 * SEC);
	lone_service_pass(&w, 5 * SEC);
}

static void silent_reader_is_waited_for(void)
{
	reader_falls_silent(false);
}

static void killed_reader_is_waited_for(void)
{
	reader_falls_silent(true);
}

LOOP_TEST(a_session_loses_many_shared_holds_for_which_a_crowd_waits, 2)
{
	static void (*const story[])(void) = {silent_reader_is_waited_for, killed_reader_is_waited_for};

	measure(story[_i]);
}

static void graces_end(void)
{
	sessions_open(1, 100);
	for (uint64_t k = 1; k <= 100; k++) {
		says(k, "HELLO 1 grace=2s");
		holds_locks(k, 60);
		lone_service_gone(&w, k, GONE_HANGUP);
	}
	w.longest_ns = 0;
	w.now = instant_add(w.now, 3 * SEC);
	lone_service_pass(&w, 5 * SEC);
}

TEST(graces_of_many_sessions_end)
{
	measure(graces_end);
}

/* --- a session that has much ----------------------------------------------------------------------------------------------- */

static void cancels(void)
{
	sessions_open(1, 2);
	holds_locks(1, 1024);
	waits_often(2, 4096, 1024);
	w.longest_ns = 0;
	for (unsigned i = 4095; i > 4000; i--)
		says_number(2, "CANCEL @", i, "");
}

TEST(one_of_many_waits_is_cancelled)
{
	measure(cancels);
}

static void locks_beside_waits(void)
{
	sessions_open(1, 3);
	holds_locks(1, 1024);
	waits_often(2, 4000, 1024);
	w.longest_ns = 0;
	for (unsigned i = 0; i < 90; i++) {
		says(2, "@x LOCK s1/0 wait=1h owner=x");
		says(2, "@y LOCK s1/0 mode=shared wait=1h owner=y count=1");
		says_number(2, "@f LOCK free", i, " wait=1h");
	}
}

TEST(a_session_with_many_waits_asks_for_more)
{
	measure(locks_beside_waits);
}

static void many_resume(void)
{
	char line[200], secret[100];
	long long serial = 0;

	sessions_open(1, 2);
	says(1, "HELLO 1 grace=1m");
	ck_assert_int_eq(sscanf(strstr(heard, "session="), "session=%lld", &serial), 1);
	ck_assert_int_eq(sscanf(strstr(heard, "secret="), "secret=%99s", secret), 1);
	holds_locks(1, 1024);
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	snprintf(line, sizeof(line), "RESUME %lld %s", serial, secret);
	says(2, line);
	ck_assert_ptr_nonnull(strstr(heard, "n=1024"));
	lone_service_pass(&w, SEC);
}

TEST(a_session_with_many_locks_is_resumed)
{
	measure(many_resume);
}

static void many_groups(void)
{
	char line[1500] = "LOCKALL";

	for (unsigned i = 0; i < 64; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " s1/%u", i);
	sessions_open(1, 6);
	holds_locks(1, 64);
	for (uint64_t k = 2; k <= 5; k++)
		for (unsigned i = 0; i < 64; i++) {
			char whole[1600];
			size_t n = (size_t)snprintf(whole, sizeof(whole), "@%u %s wait=1h owner=o%u", i, line, i);

			ck_assert_int_eq(lone_service_line(&w, k, whole, n), 0);
		}
	w.longest_ns = 0;
	says(1, "UNLOCK s1/63");
	says(1, "UNLOCK s1/0");
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(many_requests_wait_for_64_names_each)
{
	measure(many_groups);
}

/* Each of them waits behind the readers that the daemon has room for. */
static void readers_leave_a_crowd(void)
{
	sessions_open(1, 41);
	says(41, "LOCK x");
	for (uint64_t k = 1; k <= 40; k++)
		for (unsigned i = 0; i < 1000; i++) {
			char line[100];

			snprintf(line, sizeof(line), "@%u LOCK x wait=1h mode=shared owner=o%u", i, i);
			says(k, line);
		}
	says(41, "UNLOCK x");
	lone_service_pass(&w, SEC);
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_gone(&w, 20, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_of_readers_leaves_a_crowd)
{
	measure(readers_leave_a_crowd);
}

/* They are served when the request before them is answered. */
static void lines_are_served(void)
{
	char all[600] = "LOCKALL";

	sessions_open(1, 2);
	says(1, "LOCK x");
	for (unsigned i = 0; i < 64; i++) {
		says_number(1, "LOCK n", i, "");
		snprintf(all + strlen(all), sizeof(all) - strlen(all), " n%u", i);
	}
	for (unsigned i = 0; i < 950; i++) {
		char line[100];

		snprintf(line, sizeof(line), "@%u LOCKANY x wait=1h owner=o%u", i, i);
		says(2, line);
	}
	says(2, "LOCK x wait=200ms");
	for (unsigned i = 0; i < 200; i++)
		says(2, all);
	w.longest_ns = 0;
	lone_service_pass(&w, SEC);
}

TEST(many_lines_that_were_read_ahead_are_served)
{
	measure(lines_are_served);
}

/* --- the daemon ------------------------------------------------------------------------------------------------------------ */

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
	struct timespec begin, end;
	int64_t took;
	bool over;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	over = service_is_drained(w.service);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	took = (end.tv_sec - begin.tv_sec) * 1000000000 + (end.tv_nsec - begin.tv_nsec);
	if (took > w.longest_ns) {
		w.longest_ns = took;
		snprintf(w.longest, sizeof(w.longest), "a look at the drain");
	}
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

/* --- AUTH ------------------------------------------------------------------------------------------------------------------ */

#define ASKERS 9000

static void askers_hang_up(void)
{
	struct event verified = {.kind = EVENT_VERIFIED, .verified.number = 1};

	w.conf.users = true;
	service_reload(w.service, &w.conf);
	sessions_open(1, ASKERS);
	for (unsigned k = 1; k <= ASKERS; k++)
		says_number(k, "AUTH user", k, " wrong");
	w.longest_ns = 0;
	for (uint64_t k = 1; k <= ASKERS; k++)
		lone_service_gone(&w, k, GONE_HANGUP);
	ck_assert_int_eq(lone_service_step(&w, &verified), 0);
	lone_service_pass(&w, 6 * SEC);
}

TEST(sessions_hang_up_whose_auths_wait_to_be_verified)
{
	measure(askers_hang_up);
}

/* --- stores ---------------------------------------------------------------------------------------------------------------- */

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
