/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, whatever a session has, and however many of them end, come back or ask at one moment. */
#include "tests/fixture/timed_story.h"

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

/* The home of the queue is told of each job, and the stores of each lock. */
static void takes_jobs(unsigned jobs)
{
	for (unsigned i = 0; i < jobs; i++) {
		says_number(1, "DEFER q x lock=l", i, "");
		says(1, "TAKE q");
		ck_assert_msg(strstr(heard, "OK queue=q"), "%s", heard);
	}
	w.longest_ns = 0;
}

static void jobs_end_with_connection(void)
{
	sessions_open(1, 1);
	takes_jobs(1000);
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

static void jobs_end_with_quit(void)
{
	sessions_open(1, 1);
	takes_jobs(1000);
	says(1, "QUIT");
	lone_service_pass(&w, SEC);
}

static void jobs_end_with_grace(void)
{
	sessions_open(1, 1);
	says(1, "HELLO 1 grace=2s");
	takes_jobs(1000);
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, 5 * SEC);
}

LOOP_TEST(a_session_with_many_jobs_ends, 3)
{
	static void (*const story[])(void) = {jobs_end_with_connection, jobs_end_with_quit, jobs_end_with_grace};

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

static char job_id[55];

/* The client has not read of the jobs, nor that their locks were lost. */
static void jobs_lack_locks(void)
{
	char line[250], secret[100];
	long long serial = 0;

	memset(job_id, 'j', sizeof(job_id) - 1);
	w.conf.limits.jobs = 20000;
	service_reload(w.service, &w.conf);
	sessions_open(1, 2);
	says(1, "HELLO 1 grace=1m");
	ck_assert_int_eq(sscanf(strstr(heard, "session="), "session=%lld", &serial), 1);
	ck_assert_int_eq(sscanf(strstr(heard, "secret="), "secret=%99s", secret), 1);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(line, sizeof(line), "DEFER q x lock=l%u id=%s%u", i, job_id, i);
		says(1, line);
		says(1, "TAKE q ttl=30s");
		ck_assert_msg(strstr(heard, "OK queue=q"), "%s", heard);
		snprintf(line, sizeof(line), "UNLOCK l%u owner=job:q/%s%u", i, job_id, i);
		says(1, line);
		ck_assert_msg(strstr(heard, "OK name=l"), "%s", heard);
	}
	lone_service_gone(&w, 1, GONE_HANGUP);
	snprintf(line, sizeof(line), "RESUME %lld %s", serial, secret);
	says(2, line);
	w.longest_ns = 0;
	says(2, "TAKE q");
	lone_service_pass(&w, SEC);
	ck_assert_msg(strstr(heard, "OK queue=q job=j"), "%s", heard);
}

TEST(a_take_is_repeated_beside_many_jobs_that_lack_their_locks)
{
	measure(jobs_lack_locks);
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
