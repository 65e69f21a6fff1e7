/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/semaphore/permits.c, permits.c, permit_step.c, semaphores.c: permits of which a slot is lost, while their clients may rely on it, and
 * behind that.
 */
#include "tests/fixture/resumable.h"

#include <check.h>

#define SLOT_0 SLOT_PREFIX "a#0"

FIXTURE(.teardown = cluster_close)

/* Two of three granted, so the store that lost the key was needed. The client may not have read LOST. */
TEST(a_slot_that_a_store_lost_beside_one_that_refuses_goes_to_nobody_before_its_promise_is_over)
{
	two_daemons(3);
	refuses(2, "OOM");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK name=a permit=0 *");
	says(3, "ACQUIRE a limit=1 wait=1m");
	memory_remove(cluster.node[0].memory, SPAN(SLOT_0));
	passes(3340 * MSEC);
	hears(1, "! LOST name=a permit=0 fence=* reason=evicted");
	says(2, "ACQUIRE a limit=1"); /* of the stores that grant anything, one still has the key */
	passes(100 * MSEC);
	hears(2, "BUSY name=a *");
	feels(2, MOOD_WELL);
	says(4, "ACQUIRE a limit=1");
	hears(4, "BUSY name=a *");
	ck_assert(key_is_there(1, SLOT_0));
	passes(6450 * MSEC);
	hears_nothing(3);
	passes(400 * MSEC);
	hears(3, "OK name=a permit=0 *");
}

/* The mark stays, for the sake of the other permit: it keeps nobody of this limit out. */
TEST(a_slot_that_lost_its_quorum_goes_to_nobody_before_its_promise_is_over)
{
	two_daemons(3);
	says(4, "ACQUIRE a limit=2 ttl=30s");
	hears(4, "OK name=a permit=? *");
	says(1, "ACQUIRE a limit=2 ttl=3s");
	hears(1, "OK name=a permit=? *");
	says(3, "ACQUIRE a limit=2 wait=1m");
	passes(100 * MSEC);
	all_feel(MOOD_SILENT);
	passes(2730 * MSEC);
	hears(1, "! RISK name=a permit=? *");
	hears(1, "! LOST name=a permit=? fence=* reason=quorum");
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	says(2, "ACQUIRE a limit=2");
	hears(2, "BUSY name=a *");
	hears_nothing(3);
	passes(SEC);
	hears(3, "OK name=a permit=? *");
}

/* What a lost permit leaves at the stores goes no sooner than its keys would have: only UNLOCK keep= asks for more. */
TEST(a_permit_lost_while_a_store_refuses_writes_is_not_told_as_a_keep_that_is_lost)
{
	cluster_begin(1);
	says(2, "ACQUIRE a limit=2 ttl=9s"); /* the mark outlives the slot of the other */
	hears(2, "OK name=a permit=? *");
	says(1, "ACQUIRE a limit=2 ttl=3s");
	hears(1, "OK name=a permit=? *");
	says(2, "RELEASE a");
	hears(2, "OK name=a *");
	refuses(0, "NOREPLICAS Not enough good replicas to write.");
	passes(20 * SEC);
	hears(1, "! RISK name=a permit=? *");
	hears(1, "! LOST name=a permit=? fence=* reason=quorum");
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	ck_assert(!was_logged("keep-lost *"));
}

/* The mark is adopted for the sake of the other permit, which was promised more. */
TEST(a_slot_that_is_lost_while_the_mark_is_being_adopted_is_the_loss_of_the_permit)
{
	struct secret p, q;

	cluster_begin(3);
	p = says_hello(1, "grace=30s");
	q = says_hello(2, "grace=30s");
	says(1, "ACQUIRE a limit=2 ttl=2s");
	hears(1, "OK name=a permit=? *");
	says(2, "ACQUIRE a limit=2 ttl=30s");
	hears(2, "OK name=a permit=? *");
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	resumes(3, &p);
	resumes(4, &q);
	passes(2500 * MSEC);
	hears(3, "OK session=* n=0 open=1");
	hears(4, "OK session=* n=0 open=1");
	passes(SEC);
	hears(3, "! LOST name=a permit=? fence=* reason=quorum");
	passes(6500 * MSEC);
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(4, "! SAFE name=a permit=? *");
	says(3, "CHECK a");
	hears(3, "ERR LOST *");
	says(5, "ACQUIRE a limit=2");
	hears(5, "OK name=a permit=? *");
	hears_nothing(3);
	hears_nothing(4);
}

/* Store 2 is down. Of the slot or the mark both others have another value, of the other name only one of them: that may yet be adopted. */
LOOP_TEST(what_is_lost_while_the_rest_is_being_adopted_is_the_loss_of_the_permit, 2)
{
	static const char *const name[] = {SLOT_0, "a"};
	struct secret s;

	cluster_begin(3);
	s = says_hello(1, "grace=30s");
	says(1, "ACQUIRE a limit=1 ttl=30s");
	hears(1, "OK name=a permit=0 *");
	falls(2);
	key_is_overwritten(0, name[_i], "someone", 1000 * SEC);
	key_is_overwritten(1, name[_i], "someone", 1000 * SEC);
	key_is_overwritten(0, name[!_i], "someone", 1000 * SEC);
	daemon_returns(0);
	passes(100 * MSEC);
	is_resumed_with_nothing(2, &s);
	hears(2, "! LOST name=a permit=0 fence=* reason=*");
	comes(2);
	passes(5 * SEC);
	hears_nothing(2);
	says(2, "EXTEND a");
	hears(2, "ERR LOST *");
}

/* The client of 1 was told of the loss, and has not released the permit. */
TEST(a_permit_that_is_lost_keeps_no_other_limit_out)
{
	cluster_begin(3);
	session_opens_as_admin(9, 0);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	says(9, "BREAK a");
	hears(1, "! LOST name=a permit=? *");
	says(2, "ACQUIRE a limit=1");
	hears(2, "ERR LIMIT limit=2 *");
	passes(11 * SEC);
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK name=a permit=0 * free=0");
	says(3, "ACQUIRE a limit=2");
	hears(3, "ERR LIMIT limit=1 *");
	says(1, "RELEASE a");
	hears(1, "ERR LOST *");
	says(3, "ACQUIRE a limit=1");
	hears(3, "BUSY name=a limit=1 free=0 *");
}

/* The session has not released the permit that it lost. */
TEST(a_lock_of_the_name_of_a_permit_that_was_lost_is_what_a_client_and_show_are_told_of)
{
	cluster_begin(3);
	session_opens_as_admin(9, 0);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	says(9, "BREAK a");
	hears(1, "! LOST name=a permit=? *");
	passes(11 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 *");
	hears(2, "OK n=1");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=1");
	says(1, "EXTEND a");
	hears(1, "OK name=a fence=* valid_ms=*");
	says(1, "CHECK a owner=t");
	hears(1, "ERR NOTHELD *");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	says(1, "CHECK a");
	hears(1, "ERR LOST *");
	says(1, "RELEASE a");
	hears(1, "ERR LOST *");
	says(2, "LOCK a");
	hears(2, GRANT);
}

TEST(unlock_with_a_fence_gives_back_the_permit_of_that_fence)
{
	int64_t first, second;

	cluster_begin(3);
	says(1, "ACQUIRE a limit=3");
	first = number_in(hears(1, "OK *"), "fence");
	says(1, "ACQUIRE a limit=3");
	second = number_in(hears(1, "OK *"), "fence");
	says(1, "UNLOCK a fence=%lld", (long long)first);
	hears(1, "OK name=a count=0");
	says(1, "UNLOCK a fence=%lld", (long long)first);
	hears(1, "ERR NOTHELD *");
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a permit=? *"), "fence"), second);
}

/* Its client may not have read of the loss yet, nor of the new permit. */
TEST(release_with_a_fence_leaves_a_later_permit_of_the_same_slot_alone)
{
	int64_t first, second;

	cluster_begin(3);
	session_opens_as_admin(9, 0);
	says(1, "ACQUIRE a limit=1 ttl=1s");
	first = number_in(hears(1, "OK name=a permit=0 *"), "fence");
	says(9, "BREAK a");
	hears(1, "! LOST name=a permit=0 *");
	passes(2 * SEC);
	says(1, "ACQUIRE a limit=1");
	second = number_in(hears(1, "OK name=a permit=0 *"), "fence");
	says(1, "RELEASE a permit=0 fence=%lld", (long long)first);
	hears(1, "ERR NOTHELD *");
	says(1, "CHECK a permit=0");
	ck_assert_int_eq(number_in(hears(1, "OK name=a permit=0 *"), "fence"), second);
	says(1, "RELEASE a permit=0 fence=%lld", (long long)second);
	hears(1, "OK name=a free=1");
}

/* It releases nothing that it lost, and has one permit at a time. */
TEST(a_client_that_loses_permit_after_permit_may_always_ask_for_one_more)
{
	cluster_open(3);
	cluster.conf.limits.locks = 4;
	daemon_starts(0);
	passes(2 * SEC);
	session_opens_as_admin(9, 0);
	for (unsigned i = 0; i < 12; i++) {
		says(1, "ACQUIRE a limit=3 ttl=1s");
		hears(1, "OK name=a permit=? *");
		says(9, "BREAK a");
		hears(1, "! LOST name=a permit=? *");
		hears(9, "OK *");
		passes(2 * SEC);
	}
}

TEST(a_loss_is_over_when_its_client_hears_that_it_has_the_slot_again)
{
	cluster_begin(3);
	session_opens_as_admin(9, 0);
	says(1, "ACQUIRE a limit=1 ttl=1s");
	hears(1, "OK name=a permit=0 *");
	says(9, "BREAK a");
	hears(1, "! LOST name=a permit=0 *");
	passes(2 * SEC);
	says(1, "ACQUIRE a limit=1 owner=o");
	hears(1, "OK name=a permit=0 *");
	says(1, "CHECK a");
	hears(1, "ERR LOST *"); /* another owner has it */
	says(1, "RELEASE a owner=o");
	hears(1, "OK *");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK name=a permit=0 *");
	says(1, "RELEASE a");
	hears(1, "OK *");
	says(1, "RELEASE a");
	hears(1, "ERR NOTHELD *");
}

/* The turn comes while the client is away. */
LOOP_TEST(a_loss_is_over_when_its_client_hears_of_its_turn, 3)
{
	static const char *const hear[] = {"CHECK a", "ACQUIRE a limit=1 wait=1m"};
	struct secret s;

	cluster_begin(3);
	session_opens_as_admin(9, 0);
	s = says_hello(1, "grace=20s");
	says(1, "ACQUIRE a limit=1 ttl=1s");
	hears(1, "OK *");
	says(9, "BREAK a");
	hears(1, "! LOST name=a permit=0 *");
	says(1, "ACQUIRE a limit=1 wait=1m");
	goes(1, GONE_HANGUP);
	if (_i == 2)
		passes(2 * SEC);
	resumes(3, &s);
	if (_i == 2)
		hears(3, "\\* name=a permit=0 *");
	hears(3, "OK session=* n=?");
	passes(2 * SEC);
	if (_i < 2) {
		says(3, "%s", hear[_i]);
		hears(3, "OK name=a permit=0 *");
	}
	says(3, "RELEASE a");
	hears(3, "OK *");
	says(3, "RELEASE a");
	hears(3, "ERR NOTHELD *");
}
