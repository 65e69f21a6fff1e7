/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/watch.c, permits.c: a holder that subscribed is told who waits for its locks and permits. */
#include "tests/fixture/resumable.h"

#include <check.h>
#include <time.h>

FIXTURE(.teardown = cluster_close)

TEST(a_holder_that_subscribed_is_told_who_waits)
{
	cluster_begin(3);
	says(1, "SUBSCRIBE");
	hears(1, "OK");
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	hears_nothing(1);
	says(2, "LOCK a wait=1m");
	hears(1, "! CONTENDED name=a fence=* waiters=1");
	passes(50 * MSEC);
	says(3, "LOCK a wait=1m");
	hears_nothing(1);
	passes(50 * MSEC);
	says(4, "LOCK a wait=1m");
	hears(1, "! CONTENDED name=a fence=* waiters=3");
	says(1, "UNSUBSCRIBE");
	hears(1, "OK");
	passes(SEC);
	says(5, "LOCK a wait=1m");
	hears_nothing(1);
	says(1, "UNLOCK a");
	ignores(1);
	ignores(2);
}

TEST(a_subscriber_with_a_permit_is_told_who_waits_for_one)
{
	cluster_begin(3);
	says(1, "SUBSCRIBE");
	hears(1, "OK");
	says(1, "ACQUIRE a limit=2 owner=o");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=2");
	hears(2, "OK *");
	says(2, "SUBSCRIBE");
	hears(2, "OK");
	says(3, "@w ACQUIRE a limit=2 wait=1m");
	passes(10 * MSEC);
	hears(1, "! CONTENDED name=a permit=? fence=* waiters=1 owner=o");
	hears(2, "! CONTENDED name=a permit=? fence=* waiters=1");
	says(4, "ACQUIRE a limit=2 wait=1m");
	passes(10 * MSEC);
	hears_nothing(1);
	says(2, "SUBSCRIBE");
	hears(2, "OK");
	hears_nothing(2);
	says(3, "SUBSCRIBE");
	hears(3, "OK");
	says(1, "RELEASE a owner=o");
	hears(1, "OK *");
	passes(10 * MSEC);
	hears(3, "@w OK name=a *");
	hears(3, "! CONTENDED name=a permit=? fence=* waiters=1");
	says(3, "UNSUBSCRIBE");
	hears(3, "OK");
	says(3, "SUBSCRIBE");
	hears(3, "OK");
	hears_nothing(3);
	says(3, "UNSUBSCRIBE");
	hears(3, "OK");
	passes(100 * MSEC);
	says(3, "SUBSCRIBE");
	hears(3, "OK");
	hears(3, "! CONTENDED name=a permit=? fence=* waiters=1");
	hears_nothing(2);
}

TEST(a_permit_that_is_waited_for_elsewhere_is_contended)
{
	cluster_begin(3);
	says(1, "SUBSCRIBE");
	hears(1, "OK");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	is_wanted(0, 0, SLOT_PREFIX "a#0");
	hears(1, "! CONTENDED name=a permit=0 fence=* waiters=1");
	is_wanted(0, 1, SLOT_PREFIX "a#0");
	hears_nothing(1);
	passes(SEC);
	is_wanted(0, 1, SLOT_PREFIX "a#0");
	hears(1, "! CONTENDED name=a permit=0 fence=* waiters=1");
}

TEST(a_daemon_elsewhere_that_waits_contends)
{
	cluster_begin(3);
	says(1, "SUBSCRIBE");
	hears(1, "OK");
	says(1, "LOCK a owner=o");
	hears(1, GRANT);
	is_wanted(0, 0, "a");
	hears(1, "! CONTENDED name=a fence=* waiters=1 owner=o");
	is_wanted(0, 1, "a");
	hears_nothing(1);
	passes(SEC);
	is_wanted(0, 1, "a");
	hears(1, "! CONTENDED name=a fence=* waiters=1 owner=o");
	is_wanted(0, 1, "b");
	hears_nothing(1);
}

/* A daemon that waits asks each second, and its place in the queue lasts for three. */
TEST(a_daemon_elsewhere_that_has_given_up_does_not_contend)
{
	cluster_begin(3);
	says(1, "SUBSCRIBE");
	says(1, "LOCK a");
	is_wanted(0, 0, "a");
	passes(2 * SEC);
	is_wanted(0, 0, "a");
	ignores(1);
	passes(2 * SEC);
	says(2, "LOCK a wait=1m");
	hears(1, "! CONTENDED name=a fence=* waiters=2");
	passes(SEC);
	says(3, "LOCK a wait=1m");
	hears(1, "! CONTENDED name=a fence=* waiters=2");
}

TEST(a_holder_is_told_with_its_grant_and_with_SUBSCRIBE_who_waits_already)
{
	cluster_begin(3);
	says(1, "LOCK a");
	says(2, "SUBSCRIBE");
	says(2, "LOCK a wait=1m");
	says(3, "LOCK a wait=1m");
	ignores(1);
	hears(2, "OK");
	says(1, "SUBSCRIBE");
	hears(1, "OK");
	hears(1, "! CONTENDED name=a fence=* waiters=2");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, GRANT);
	hears(2, "! CONTENDED name=a fence=* waiters=1");
	hears_nothing(2);
}

static void subscribes_anew(unsigned k)
{
	says(k, "UNSUBSCRIBE");
	hears(k, "OK");
	says(k, "SUBSCRIBE");
	hears(k, "OK");
}

TEST(a_holder_that_subscribes_again_and_again_is_told_at_most_every_100_ms)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	subscribes_anew(1);
	hears(1, "! CONTENDED name=a fence=* waiters=1");
	for (int i = 0; i < 9; i++) {
		passes(10 * MSEC);
		subscribes_anew(1);
		hears_nothing(1);
	}
	passes(10 * MSEC);
	subscribes_anew(1);
	hears(1, "! CONTENDED name=a fence=* waiters=1");
}

TEST(a_reader_that_subscribes_is_told_what_only_another_reader_was_told)
{
	cluster_begin(3);
	says(1, "LOCK a mode=shared");
	says(2, "LOCK a mode=shared");
	ignores(1);
	ignores(2);
	subscribes_anew(1);
	says(3, "LOCK a wait=1m");
	hears(1, "! CONTENDED name=a fence=* waiters=1");
	subscribes_anew(2);
	hears(2, "! CONTENDED name=a fence=* waiters=1");
	hears_nothing(1);
}

TEST(a_reader_that_subscribes_again_and_again_hides_nothing_from_the_others)
{
	cluster_begin(3);
	says(1, "LOCK a mode=shared");
	says(2, "LOCK a mode=shared");
	ignores(1);
	ignores(2);
	subscribes_anew(1);
	subscribes_anew(2);
	says(3, "LOCK a wait=1m");
	hears(1, "! CONTENDED name=a fence=* waiters=1");
	hears(2, "! CONTENDED name=a fence=* waiters=1");
	passes(100 * MSEC);
	subscribes_anew(1);
	hears(1, "! CONTENDED name=a fence=* waiters=1");
	says(4, "LOCK a wait=1m");
	hears(2, "! CONTENDED name=a fence=* waiters=2");
	hears_nothing(1);
}

/* Loop: a lock, or a permit. */
LOOP_TEST(who_waits_is_told_again_over_the_next_connection, 2)
{
	static const char *const request[] = {"LOCK a", "ACQUIRE a limit=1"};
	struct secret s;

	cluster_begin(3);
	s = says_hello(1, "grace=20s");
	says(1, "%s", request[_i]);
	hears(1, "OK name=a *");
	says(2, "%s wait=1m", request[_i]);
	subscribes_anew(1);
	hears(1, "! CONTENDED name=a *");
	goes(1, GONE_HANGUP);
	resumes(3, &s);
	hears(3, "\\* name=a *");
	hears(3, "OK session=* n=1");
	subscribes_anew(3);
	hears(3, "! CONTENDED name=a *");
}

/* Readers get the lock together, and each hears of it in turn. */
LOOP_TEST(nobody_is_told_who_contends_before_its_grant, 2)
{
	cluster_begin(3);
	says(1, "LOCK a");
	for (unsigned k = 2; k <= 4; k++) {
		if (!_i)
			says(k, "SUBSCRIBE"), hears(k, "OK");
		says(k, "@t LOCK a mode=shared wait=1m");
	}
	says(5, "LOCK a wait=1m");
	for (unsigned k = 3; k <= 4; k++)
		if (_i)
			says(k, "SUBSCRIBE"), hears(k, "OK");
	ignores(1);
	says(1, "UNLOCK a");
	ignores(1);
	for (unsigned k = 2; k <= 4; k++) {
		hears(k, "@t OK name=a * mode=shared");
		if (k > 2 || !_i)
			hears(k, "! CONTENDED name=a fence=* waiters=1");
		hears_nothing(k);
	}
}

/* Who has just been told is not told again, and nobody is counted for that. */
TEST(many_permits_and_many_who_wait_for_them_cost_little)
{
	clock_t from;

	cluster_begin(1);
	for (unsigned i = 0; i < 400; i++) {
		says(1, "ACQUIRE s limit=400 owner=%u", i);
		hears(1, "OK *");
	}
	says(1, "SUBSCRIBE");
	hears(1, "OK");
	for (unsigned k = 2; k < 8; k++)
		for (unsigned i = 0; i < 250; i++)
			says(k, "@%u ACQUIRE s limit=400 wait=1h", i);
	from = clock();
	for (unsigned i = 0; i < 200; i++)
		says(18, "@%u ACQUIRE s limit=400 wait=1h", i);
	ck_assert_double_lt((double)(clock() - from) / CLOCKS_PER_SEC, 0.3);
	hears(1, "! CONTENDED name=s permit=* fence=* waiters=1 owner=*");
}
