/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/admin/admin.c: DRAIN, who is refused, who goes on, and when it is over. Session 9 is an administrator's. */
#include "tests/fixture/adopting.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define ADMIN 9

static void begins(unsigned nodes)
{
	cluster_begin(nodes);
	session_opens_as_admin(ADMIN, 0);
}

static bool is_drained(void)
{
	return service_is_drained(cluster.daemon[0].service);
}

static void drains(const char *request, const char *answer)
{
	says(ADMIN, "%s", request);
	hears(ADMIN, answer);
	ck_assert(service_is_draining(cluster.daemon[0].service));
}

FIXTURE(.teardown = cluster_close)

TEST(only_administrators_may)
{
	begins(3);
	says(1, "DRAIN");
	hears(1, "ERR DENIED DRAIN is for root, *");
	ck_assert(!service_is_draining(cluster.daemon[0].service) && !is_drained());
	ck_assert_int_eq(figure(0, METRIC_DRAINING), 0);
}

TEST(a_drain_is_over_at_once_when_nobody_holds)
{
	begins(1);
	drains("DRAIN", "OK locks=0 in_ms=-1");
	ck_assert(is_drained());
	ck_assert(was_logged("drain in=forever by=*"));
	ck_assert_int_eq(figure(0, METRIC_DRAINING), 1);
}

TEST(a_holder_goes_on_and_the_drain_waits_for_it)
{
	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	drains("DRAIN", "OK locks=1 in_ms=-1");
	says(1, "LOCK a");
	hears(1, "OK name=a * count=2");
	says(1, "CHECK a");
	hears(1, "OK name=a *");
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	passes(60 * SEC);
	ck_assert(!is_drained());
	says(1, "UNLOCK a");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=1");
	hears(1, "OK name=a count=0");
	ck_assert(is_drained());
	ck_assert(!key_is_there(0, "a"));
}

TEST(a_new_request_is_refused)
{
	static const char *const request[] = {"LOCK b", "LOCK b wait=1m", "LOCK a owner=o", "LOCKALL b c", "LOCKANY b c wait=1m", "ACQUIRE s limit=2",
	                                      "TAKE q", "TAKE q wait=1m"};

	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	drains("DRAIN", "OK *");
	for (unsigned i = 0; i < sizeof(request) / sizeof(*request); i++) {
		says(1, "%s", request[i]);
		hears(1, "ERR DRAINING the daemon drains: it grants nothing new, *");
	}
	says(1, "DEFER q later");
	hears(1, "OK queue=q *");
	says(1, "RATE r limit=5 per=1s");
	hears(1, "OK *");
}

/* @q stands in the line of its semaphore, and asks the stores for nothing there. */
TEST(a_request_that_waits_is_refused)
{
	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "ACQUIRE s limit=1");
	hears(1, "OK *");
	says(2, "@l LOCK a wait=1m");
	says(2, "@m LOCKALL a b wait=1m");
	says(2, "@n LOCKANY a wait=1m");
	says(2, "@p ACQUIRE s limit=1 wait=1m");
	says(2, "@q ACQUIRE s limit=1 wait=1m");
	says(2, "@t TAKE q wait=1m");
	hears_nothing(2);
	drains("DRAIN", "OK *");
	for (unsigned i = 0; i < 6; i++)
		hears(2, "@? ERR DRAINING *");
	ck_assert_uint_eq(unanswered(2), 0);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	ck_assert(!is_drained());
	says(1, "RELEASE s");
	hears(1, "OK *");
	ck_assert(is_drained());
}

/* A step refuses one request, so the others still wait when DRAIN is answered. Then what they wait for becomes free. */
TEST(nobody_is_granted_behind_the_answer_however_many_wait)
{
	int64_t granted;

	begins(1);
	cluster.conf.work = 1;
	service_reload(cluster.daemon[0].service, &cluster.conf);
	says(7, "LOCK a");
	hears(7, "OK *");
	says(1, "LOCK a wait=1m");
	says(8, "LOCK a wait=1m");
	says(7, "UNLOCK a"); /* the round for the next holder asks for tokens for those behind it as well */
	hears(7, "OK *");
	for (unsigned k = 1; k <= 2; k++) {
		if (k == 2)
			says(k, "LOCK r mode=shared");
		hears(k, "OK *");
	}
	says(2, "ACQUIRE s limit=1");
	hears(2, "OK *");
	says(2, "@w LOCK r wait=1m owner=writer");
	for (unsigned k = 3; k <= 6; k++) {
		says(k, "@a LOCK a wait=1m");
		says(k, "@r LOCK r wait=1m mode=shared");
		says(k, "@g LOCKALL a r wait=1m owner=g");
		says(k, "@y LOCKANY a wait=1m owner=y");
		says(k, "@p ACQUIRE s limit=1 wait=1m");
		says(k, "@t TAKE q wait=1m");
	}
	granted = figure(0, METRIC_GRANTS);
	drains("DRAIN", "OK *");
	ck_assert_int_gt(figure(0, METRIC_WAITERS), 0);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	says(2, "@u UNLOCK r");
	says(2, "@s RELEASE s");
	says(1, "DEFER q job");
	passes(SEC);
	hears(8, "ERR DRAINING *");
	for (unsigned k = 3; k <= 6; k++)
		for (unsigned i = 0; i < 6; i++)
			hears(k, "@? ERR DRAINING *");
	ck_assert_int_eq(figure(0, METRIC_GRANTS), granted);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
	ck_assert_int_eq(figure(0, METRIC_JOBS_TAKEN), 0);
	ck_assert(is_drained());
}

/* A step looks at fewer names than these sessions have: it goes on where the last one ended. */
TEST(who_has_many_names_does_not_keep_others_from_being_refused)
{
	begins(1);
	says(1, "HELLO 1 grace=1m"), hears(1, "OK *");
	says(2, "HELLO 1 grace=1m"), hears(2, "OK *");
	for (unsigned i = 0; i < 20; i++)
		says(1, "LOCK r%u mode=shared", i), says(3, "LOCK r%u mode=shared", i);
	hears(3, "OK *");
	says(2, "LOCK r1 wait=1h");
	says(3, "@g LOCKALL r1 r2 wait=1h");
	all_feel(MOOD_SILENT);
	cluster.conf.work = 1;
	service_reload(cluster.daemon[0].service, &cluster.conf);
	goes(1, GONE_RESET);
	goes(2, GONE_RESET);
	drains("DRAIN", "OK *");
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
	ignores(3);
	ck_assert_uint_eq(unanswered(3), 0);
}

/* Its round is under way: the votes that it gets are given back. */
TEST(a_request_that_the_stores_are_asked_about_is_refused)
{
	begins(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a wait=1m");
	drains("DRAIN", "OK locks=0 in_ms=-1");
	hears(1, "ERR DRAINING *");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears_nothing(1);
	ck_assert(is_drained());
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
}

TEST(an_UNLOCK_that_waits_for_the_stores_is_waited_for)
{
	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	drains("DRAIN", "OK *");
	all_feel(MOOD_SILENT);
	says(1, "UNLOCK a sync=yes");
	ck_assert(!is_drained());
	all_feel(MOOD_WELL);
	hears(1, "OK name=a count=0");
	ck_assert(is_drained());
}

TEST(a_holder_may_share_its_lock_and_nobody_joins)
{
	begins(3);
	passes(SEC);
	says(1, "LOCK a");
	hears(1, "OK *");
	drains("DRAIN", "OK *");
	says(1, "LOCK a mode=shared");
	hears(1, "OK name=a * mode=shared");
	passes(SEC);
	says(2, "LOCK a mode=shared wait=1m");
	hears(2, "ERR DRAINING *");
	ck_assert(!is_drained());
}

TEST(a_request_that_waits_for_the_adoption_of_its_hold_goes_on)
{
	struct secret s;

	adoption_is_under_way(&s);
	resumes(1, &s);
	passes(2 * SEC);
	hears(1, "OK session=* n=0 open=1");
	says(1, "@c LOCK a wait=1m");
	session_opens_as_admin(ADMIN, 0);
	drains("DRAIN", "OK *");
	hears_nothing(1);
	all_come();
	passes(5 * SEC);
	hears(1, "! SAFE *");
	hears(1, "@c OK name=a * count=2");
	ck_assert(!is_drained());
}

TEST(a_job_is_waited_for_until_its_home_knows_the_end)
{
	const char *taken;
	char id[80];

	begins(3);
	says(1, "DEFER q later");
	hears(1, "OK *");
	says(1, "TAKE q");
	taken = hears(1, "OK queue=q job=*");
	ck_assert_int_eq(sscanf(strstr(taken, "job="), "job=%79s", id), 1);
	drains("DRAIN", "OK locks=0 in_ms=-1");
	ck_assert(!is_drained());
	says(1, "DONE %s", id);
	hears(1, "OK queue=q *");
	ck_assert(is_drained());
}

TEST(a_drain_ends_after_its_time_although_somebody_holds)
{
	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	drains("DRAIN in=5s", "OK locks=1 in_ms=5000");
	ck_assert(was_logged("drain in_ms=5000 by=*"));
	passes(5 * SEC - MSEC);
	ck_assert(!is_drained());
	passes(MSEC);
	ck_assert(is_drained());
	hears_nothing(1);
	ck_assert(key_is_there(0, "a"));
}

TEST(the_last_DRAIN_says_how_long)
{
	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	drains("DRAIN in=5s", "OK *");
	passes(SEC);
	drains("DRAIN in=10s", "OK locks=1 in_ms=10000");
	passes(9 * SEC);
	ck_assert(!is_drained());
	drains("DRAIN", "OK locks=1 in_ms=-1");
	passes(60 * SEC);
	ck_assert(!is_drained());
	drains("DRAIN in=0s", "OK locks=1 in_ms=0");
	wakes(0);
	ck_assert(is_drained());
	drains("DRAIN", "OK locks=1 in_ms=-1");
	ck_assert(!is_drained());
}

TEST(subscribers_and_watchers_are_told_of_a_drain)
{
	struct event stop = {.kind = EVENT_STOP};

	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "SUBSCRIBE");
	hears(1, "OK");
	says(2, "WATCH");
	hears(2, "OK *");
	drains("DRAIN in=5s", "OK *");
	hears(1, "! DRAIN in_ms=5000");
	drains("DRAIN", "OK *");
	hears(1, "! DRAIN in_ms=-1");
	drains("DRAIN in=4s", "OK *");
	hears(1, "! DRAIN in_ms=4000");
	passes(SEC);
	says(3, "SUBSCRIBE");
	hears(3, "OK");
	hears(3, "! DRAIN in_ms=3000");
	hears_nothing(2);
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	hears(1, "! DRAIN in_ms=0");
	hears(3, "! DRAIN in_ms=0");
	daemon_ends(0);
}

TEST(a_stop_ends_a_drain)
{
	struct event stop = {.kind = EVENT_STOP};

	begins(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	drains("DRAIN", "OK *");
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	ck_assert(hung_up(1) && !is_drained() && service_is_draining(cluster.daemon[0].service));
	daemon_ends(0);
	ck_assert(key_is_there(0, "a"));
}

/* What it holds comes back, and its place in a queue does not. */
TEST(a_session_may_be_resumed_and_is_waited_for)
{
	char resume[100];
	const char *greeting;

	begins(3);
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "HELLO 1 grace=10s");
	greeting = hears(1, "OK proto=1 *");
	snprintf(resume, sizeof(resume), "RESUME %lld %.32s", (long long)number_in(greeting, "session"), strstr(greeting, "secret=") + 7);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "@w LOCK b wait=1m");
	goes(1, GONE_HANGUP);
	drains("DRAIN", "OK *");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	ck_assert(!is_drained());
	says(3, "%s", resume);
	hears(3, ROW_A);
	hears(3, "OK session=* n=1");
	says(3, "LOCK b wait=1m");
	hears(3, "ERR DRAINING *");
	says(3, "LOCK a");
	hears(3, "OK name=a * count=2");
	goes(3, GONE_HANGUP);
	passes(9 * SEC);
	ck_assert(!is_drained());
	passes(SEC);
	ck_assert(is_drained());
}

/* It holds what the stores have not confirmed yet, so what it asks for as that owner is not new, until it is told that it does not hold it. */
LOOP_TEST(what_was_asked_for_as_a_holder_is_refused_when_the_hold_is_no_more, 2)
{
	struct secret s;
	bool unlocks = _i == 1;

	adoption_is_under_way(&s);
	session_opens_as_admin(ADMIN, 0);
	says(2, "@r RESUME %lld %s", (long long)s.serial, s.text);
	passes(2010 * MSEC);
	hears(2, "@r OK session=* n=0 open=1");
	says(2, "@a LOCK a wait=1m");
	drains("DRAIN", "OK *");
	hears_nothing(2);
	if (unlocks) {
		says(2, "@u UNLOCK a");
		hears(2, "@u OK name=a count=0");
	} else {
		passes(10 * SEC);
		hears(2, "! LOST *");
	}
	wakes(0);
	hears(2, "@a ERR DRAINING *");
	all_come();
	passes(10 * SEC);
	hears_nothing(2);
	ck_assert_int_eq(figure(0, METRIC_GRANTS), 0);
	ck_assert(is_drained());
}
