/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/adopt.c: two runs of one daemon that know the same value of a lock, and a third daemon that wants it (S8, S11). */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;
static int64_t fence;
static const unsigned sizes[] = {1, 3, 5};

static void held_by_1(unsigned nodes, const char *fields)
{
	fence = held_with_grace(nodes, "grace=30s", fields, &s1);
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(the_previous_run_that_wakes_up_harms_nothing, 9)
{
	unsigned how = (unsigned)_i % 3, nodes = sizes[_i / 3];

	held_by_1(nodes, "");
	cluster.daemon[0].stopped = true;
	ck_assert_uint_eq(daemon_inherits(1, 0), 0);
	session_opens(2, 1);
	is_resumed_as(2, &s1, fence);
	passes((how ? 1 : 4) * SEC);
	cluster.daemon[0].stopped = false;
	wakes(0);
	if (how == 0) {
		hears(1, "! LOST name=a fence=* reason=evicted"); /* its renewal found another value */
	} else {
		says(1, how == 1 ? "UNLOCK a" : "QUIT");
		hears(1, "OK*");
		ck_assert_uint_ge(asked(CALL_RELEASE), nodes); /* which find nothing of that value */
	}
	passes(10 * SEC);
	says(2, "CHECK a");
	ck_assert_int_eq(number_in(hears(2, "OK name=a *"), "fence"), fence);
	session_opens(3, 0);
	says(3, "LOCK a");
	hears(3, "BUSY name=a *");
}

/*
 * Two runs on copies of one directory. A store that never had the key, and one store that each of them has, deny it to both. Neither may release what the
 * previous run told its client.
 */
TEST(two_runs_that_take_a_lock_from_each_other_free_nothing)
{
	cluster_begin(3);
	passes(2 * SEC);
	falls(0);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	daemon_ends(0);
	journal_is_copied(1, 0);
	comes(0);
	feels(2, MOOD_SILENT);
	ck_assert_uint_eq(daemon_inherits(1, 1), 0);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	feels(2, MOOD_WELL);
	passes(100 * MSEC);
	session_opens(3, 1);
	says(3, "LOCK a wait=1m");
	session_opens(4, 0);
	says(4, "LOCK a wait=1m"); /* the cluster sees to it: see cluster_promises.c */
	passes(9 * SEC);
	hears_nothing(3);
	hears_nothing(4);
}

TEST(one_adoption_of_a_value_succeeds)
{
	held_by_1(3, "");
	journal_is_compacted(0);
	cluster.daemon[0].stopped = true;
	ck_assert_uint_eq(daemon_inherits(1, 0), 0);
	daemon_ends(0);
	session_opens(2, 1);
	is_resumed_as(2, &s1, fence);
	/* The journal is as before the adoption, as if another had copied it. */
	journal_loses_tail(1, journal_length(1) - 2);
	ck_assert_uint_eq(daemon_inherits(2, 1), 0);
	session_opens(3, 2);
	is_resumed_with_nothing(3, &s1);
	hears(3, "! LOST name=a fence=* reason=evicted");
	says(2, "CHECK a");
	ck_assert_int_eq(number_in(hears(2, "OK name=a *"), "fence"), fence);
}

TEST(a_third_run_adopts_from_the_second)
{
	held_by_1(3, "");
	daemon_returns(0);
	daemon_returns(0);
	passes(15 * SEC);
	daemon_returns(0);
	is_resumed_as(2, &s1, fence);
}

/*
 * A call that sets the key runs late, when the other votes are over and somebody else has had the lock. To the next run this key must not look like one that
 * stood there all the time. Of a, b, c only a renews the lock; c gets the late call, an ACQUIRE or a renewal that puts the key back.
 */
LOOP_TEST(a_key_that_is_set_when_the_lock_may_be_over_is_no_proof_that_it_was_held, 2)
{
	enum call_kind kind = _i ? CALL_ACQUIRE : CALL_EXTEND;
	struct answer answer;
	struct call late;

	cluster_open(3);
	cluster.conf.timeout_us = _i ? 2 * SEC : 500 * MSEC;
	daemon_starts(0);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(5, 1);
	s1 = says_hello(1, "grace=30s");
	if (_i)
		feels(2, MOOD_SILENT);
	says(1, "LOCK a ttl=1s");
	fence = number_in(hears(1, "OK name=a *"), "fence");
	refuses(1, "BUSY");
	passes(400 * MSEC);
	memory_remove(cluster.node[2].memory, SPAN("a"));
	feels(2, MOOD_SILENT);
	passes(280 * MSEC);
	late = late_call(2, kind);
	daemon_ends(0);
	all_feel(MOOD_WELL);
	passes(330 * MSEC);
	says(5, "LOCK a ttl=1s");
	ck_assert_int_gt(number_in(hears(5, "OK name=a *"), "fence"), fence);
	passes(40 * MSEC);
	says(5, "UNLOCK a");
	hears(5, "OK *");
	passes(40 * MSEC);
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, _i ? 'L' : 'M');
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	passes(20 * MSEC);
	resumes(2, &s1);
	hears(2, "OK session=* n=0*");
	hears(2, "! LOST *");
}
