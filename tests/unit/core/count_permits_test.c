/* SPDX-License-Identifier: BSD-2-Clause */
/* count= of ACQUIRE, RELEASE and UNLOCK (daemon/core/request/semaphores.c, semaphores.c): what is repeated changes nothing. */
#include "tests/fixture/resumable.h"

#include <check.h>

#define ADMIN 8

static struct secret s1;

static void begins(void)
{
	cluster_begin(3);
	session_opens_as_admin(ADMIN, 0);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=20s");
}

/* So many permits of s are had. */
static void permits_are(int64_t n)
{
	char pattern[32];

	says(2, "SHOW s");
	for (int64_t i = 0; i < n; i++)
		hears(2, "\\* role=holder *");
	snprintf(pattern, sizeof(pattern), "OK n=%lld*", (long long)n);
	hears(2, pattern);
}

FIXTURE(.teardown = cluster_close)

TEST(an_acquire_that_is_repeated_answers_with_the_permit_of_its_owner)
{
	int64_t fence;

	begins();
	says(1, "ACQUIRE s limit=3 owner=o count=1");
	fence = number_in(hears(1, "OK name=s permit=* free=2"), "fence");
	says(1, "ACQUIRE s limit=3 owner=o count=1 wait=1m");
	ck_assert_int_eq(number_in(hears(1, "OK name=s permit=* free=2"), "fence"), fence);
	says(1, "ACQUIRE s limit=3 owner=p count=1");
	ck_assert_int_ne(number_in(hears(1, "OK name=s permit=* free=1"), "fence"), fence);
	says(1, "ACQUIRE s limit=3 owner=o count=2");
	hears(1, "OK name=s permit=* free=0");
	says(1, "ACQUIRE s limit=3 owner=o count=1");
	hears(1, "ERR ARG count=1, but this owner has 2 permits: *");
	says(1, "ACQUIRE s limit=3 owner=o count=4");
	hears(1, "ERR ARG *");
	says(1, "ACQUIRE s limit=3 owner=o count=0");
	hears(1, "ERR ARG *");
	permits_are(3);
}

TEST(an_acquire_whose_answer_was_lost_takes_one_permit)
{
	begins();
	says(1, "ACQUIRE s limit=3 owner=o count=1");
	goes(1, GONE_HANGUP);
	resumes(9, &s1);
	hears(9, "\\* name=s permit=* owner=o");
	hears(9, "OK session=* n=1");
	says(9, "ACQUIRE s limit=3 owner=o count=1");
	hears(9, "OK name=s permit=* free=2");
	permits_are(1);
}

TEST(an_acquire_under_way_at_the_cut_and_the_repeated_one_take_one_permit)
{
	begins();
	for (unsigned node = 0; node < 3; node++)
		feels(node, MOOD_SILENT);
	says(1, "ACQUIRE s limit=3 owner=o count=1");
	goes(1, GONE_HANGUP);
	resumes(9, &s1);
	hears(9, "OK session=* n=0");
	says(9, "ACQUIRE s limit=3 owner=o count=1 wait=1m");
	for (unsigned node = 0; node < 3; node++)
		feels(node, MOOD_WELL);
	passes(SEC);
	hears(9, "OK name=s permit=* free=2");
	permits_are(1);
}

TEST(a_waiting_acquire_that_is_repeated_is_replaced_and_keeps_its_place)
{
	begins();
	says(3, "ACQUIRE s limit=1");
	hears(3, "OK *");
	says(1, "@first ACQUIRE s limit=1 owner=o count=1 wait=1m");
	says(2, "ACQUIRE s limit=1 wait=1m");
	says(1, "@second ACQUIRE s limit=1 owner=o count=1 wait=1m");
	hears(1, "@first ERR CANCELLED *");
	says(3, "RELEASE s");
	hears(3, "OK *");
	passes(SEC);
	hears(1, "@second OK name=s permit=* free=0");
	hears_nothing(2);
	says(1, "RELEASE s owner=o count=0");
	hears(1, "OK name=s free=1 count=0");
	passes(SEC);
	hears(2, "OK name=s *");
}

TEST(a_repeated_acquire_that_does_not_wait_gives_the_place_up)
{
	begins();
	says(3, "ACQUIRE s limit=1");
	hears(3, "OK *");
	says(1, "@first ACQUIRE s limit=1 owner=o count=1 wait=1m");
	says(1, "@second ACQUIRE s limit=1 owner=o count=1");
	hears(1, "@first ERR CANCELLED *");
	hears(1, "@second BUSY *");
	says(3, "RELEASE s");
	hears(3, "OK *");
	passes(SEC);
	hears_nothing(1);
	permits_are(0);
}

/* RELEASE, or UNLOCK. */
LOOP_TEST(a_release_with_count_0_gives_up_a_wait_from_before_the_cut, 2)
{
	begins();
	says(3, "ACQUIRE s limit=1");
	hears(3, "OK *");
	says(1, "ACQUIRE s limit=1 owner=o count=1 wait=1m");
	goes(1, GONE_HANGUP);
	resumes(9, &s1);
	hears(9, "OK session=* n=0");
	says(9, "%s s owner=o count=0", _i ? "UNLOCK" : "RELEASE");
	hears(9, _i ? "OK name=s count=0" : "OK name=s free=0 count=0");
	says(3, "RELEASE s");
	hears(3, "OK *");
	passes(SEC);
	permits_are(0);
}

/* The owner relies on a permit that it has lost meanwhile. */
TEST(an_acquire_that_is_refused_for_a_loss_ends_the_one_that_waits)
{
	begins();
	says(1, "ACQUIRE s limit=2 owner=o count=1");
	hears(1, "OK *");
	says(3, "ACQUIRE s limit=2");
	hears(3, "OK *");
	says(1, "@first ACQUIRE s limit=2 owner=o count=2 wait=1m");
	says(ADMIN, "BREAK s");
	hears(ADMIN, "OK *");
	hears(1, "! LOST name=s *");
	says(1, "@second ACQUIRE s limit=2 owner=o count=2 wait=1m");
	hears(1, "@second ERR ARG count=2, but this owner has 0 permits: *");
	hears(1, "@first ERR CANCELLED *");
	passes(30 * SEC);
	hears_nothing(1);
	permits_are(0);
}

TEST(a_release_that_is_repeated_changes_nothing)
{
	int64_t fence;

	begins();
	says(1, "ACQUIRE s limit=3 count=1");
	hears(1, "OK *");
	says(1, "ACQUIRE s limit=3 count=2");
	fence = number_in(hears(1, "OK *"), "fence");
	says(1, "RELEASE s count=3");
	hears(1, "ERR ARG *");
	says(1, "RELEASE s count=1");
	hears(1, "OK name=s free=2 count=1");
	says(1, "RELEASE s count=1");
	hears(1, "OK name=s free=2 count=1");
	permits_are(1);
	says(1, "RELEASE s count=0 fence=%lld", (long long)fence);
	hears(1, "ERR NOTHELD *");
	says(1, "RELEASE s count=0");
	hears(1, "OK name=s free=3 count=0");
	says(1, "RELEASE s count=0");
	hears(1, "OK name=s count=0");
	says(1, "RELEASE s count=0 fence=%lld", (long long)fence);
	hears(1, "OK name=s count=0");
	says(1, "RELEASE s");
	hears(1, "ERR NOTHELD *");
}

TEST(an_unlock_of_a_permit_that_is_repeated_changes_nothing)
{
	begins();
	says(1, "ACQUIRE s limit=3 count=1");
	hears(1, "OK *");
	says(1, "UNLOCK s count=0");
	hears(1, "OK name=s count=0");
	says(1, "UNLOCK s count=0");
	hears(1, "OK name=s count=0");
}

TEST(a_release_of_a_loss_that_is_repeated_tells_the_loss_again)
{
	begins();
	says(1, "ACQUIRE s limit=3 owner=o count=1");
	hears(1, "OK *");
	says(ADMIN, "BREAK s");
	hears(ADMIN, "OK *");
	passes(SEC);
	hears(1, "! LOST name=s *");
	says(1, "RELEASE s owner=o count=0");
	hears(1, "ERR LOST *");
	goes(1, GONE_HANGUP);
	resumes(9, &s1);
	hears(9, "OK session=* n=0");
	says(9, "RELEASE s owner=o count=0");
	hears(9, "ERR LOST *");
	passes(21 * SEC);
	says(9, "RELEASE s owner=o count=0");
	hears(9, "OK name=s count=0");
}

/* Of a session that can be resumed they are told again as long as the request may be repeated. */
LOOP_TEST(a_release_with_count_0_acknowledges_all_permits_that_were_lost, 2)
{
	unsigned k = _i ? 1 : 3; /* 3 has no grace */

	begins();
	for (unsigned i = 0; i < 3; i++) {
		says(k, "ACQUIRE s limit=4 owner=o");
		hears(k, "OK *");
	}
	says(k, "ACQUIRE s limit=4 owner=p");
	hears(k, "OK *");
	says(ADMIN, "BREAK s");
	hears(ADMIN, "OK *");
	passes(SEC);
	for (unsigned i = 0; i < 4; i++)
		hears(k, "! LOST name=s *");
	says(k, "RELEASE s owner=o count=0");
	hears(k, "ERR LOST *");
	passes(_i ? 30 * SEC : 0);
	says(k, "RELEASE s owner=o count=0");
	hears(k, "OK name=s *count=0");
	says(k, "RELEASE s owner=p");
	hears(k, "ERR LOST *");
}

TEST(an_unlock_of_a_permit_by_the_fence_of_an_earlier_one_releases_nothing)
{
	int64_t fence;

	begins();
	says(1, "ACQUIRE s limit=3");
	fence = number_in(hears(1, "OK *"), "fence");
	says(1, "RELEASE s");
	hears(1, "OK *");
	says(1, "ACQUIRE s limit=3");
	hears(1, "OK *");
	says(1, "UNLOCK s fence=%lld count=0", (long long)fence);
	hears(1, "ERR NOTHELD *");
	says(1, "UNLOCK s fence=%lld", (long long)fence);
	hears(1, "ERR NOTHELD *");
	permits_are(1);
	says(1, "UNLOCK s count=0");
	hears(1, "OK name=s count=0");
	says(1, "UNLOCK s fence=%lld count=0", (long long)fence);
	hears(1, "OK name=s count=0");
}
