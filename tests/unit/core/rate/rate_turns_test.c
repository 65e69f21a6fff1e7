/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/rate/rate.c: RATE with wait= waits in turn, asks no sooner than it may be admitted, and ends with its session. */
#include "tests/fixture/cluster.h"

#include <check.h>

#define ONE "limit=1 per=10s"

/* Sessions 1 to 3; the one use of n is consumed. */
static void is_used_up(void)
{
	cluster_begin(1);
	session_opens(2, 0);
	session_opens(3, 0);
	says(1, "RATE n " ONE);
	hears(1, "OK left=0 reset_ms=*");
}

TEST(a_use_that_fits_is_admitted_at_once)
{
	cluster_begin(1);
	says(1, "RATE n limit=2 per=10s wait=5s");
	hears(1, "OK left=1 reset_ms=*");
	cluster_close();
}

TEST(those_that_wait_are_admitted_in_turn_and_the_home_is_asked_no_sooner)
{
	unsigned before;

	is_used_up();
	says(2, "RATE n " ONE " wait=1m");
	says(3, "RATE n " ONE " wait=forever");
	before = asked(CALL_HOME);
	passes(9 * SEC);
	hears_nothing(2);
	ck_assert_uint_eq(asked(CALL_HOME), before);
	passes(1100 * MSEC);
	hears(2, "OK left=0 reset_ms=*");
	hears_nothing(3);
	passes(10 * SEC);
	hears(3, "OK left=0 reset_ms=*");
	ck_assert_uint_le(asked(CALL_HOME), before + 4);
	cluster_close();
}

TEST(a_wait_that_is_over_tells_when_to_ask_again)
{
	is_used_up();
	says(2, "RATE n " ONE " wait=2s");
	says(3, "RATE n " ONE " wait=3s");
	passes(2100 * MSEC);
	hears(2, "TIMEOUT waited_ms=2000 retry_ms=*");
	hears_nothing(3);
	passes(SEC);
	hears(3, "TIMEOUT waited_ms=3000 retry_ms=*");
	passes(8 * SEC);
	says(1, "RATE n " ONE);
	hears(1, "OK left=0 *");
	cluster_close();
}

TEST(a_wait_that_is_over_tells_nothing_of_a_use_with_other_terms)
{
	is_used_up();
	says(2, "RATE n " ONE " wait=1m");
	says(3, "RATE n limit=5 per=1s wait=2s");
	passes(2100 * MSEC);
	hears(3, "TIMEOUT waited_ms=2000");
	cluster_close();
}

TEST(a_use_that_fits_does_not_wait_for_what_a_larger_one_was_told)
{
	cluster_begin(1);
	session_opens(2, 0);
	says(1, "RATE n limit=3 per=10s cost=2");
	hears(1, "OK left=1 *");
	says(1, "@a RATE n limit=3 per=10s cost=3 wait=1m");
	says(2, "RATE n limit=3 per=10s wait=1m");
	passes(SEC);
	hears_nothing(2);
	says(1, "@b CANCEL @a");
	hears(1, "@b OK");
	hears(1, "@a ERR CANCELLED *");
	hears(2, "OK left=0 *");
	cluster_close();
}

/* Loop: how the session that is first in turn goes. */
LOOP_TEST(the_turn_goes_on_when_a_session_goes_and_nothing_is_counted_for_it, 2)
{
	is_used_up();
	says(2, "@a RATE n " ONE " wait=1m");
	says(2, "@b RATE n " ONE " wait=1m");
	says(3, "RATE n " ONE " wait=1m");
	passes(SEC);
	goes(2, _i ? GONE_RESET : GONE_HANGUP);
	passes(9100 * MSEC);
	hears(3, "OK left=0 *");
	cluster_close();
}

TEST(a_daemon_that_drains_refuses_those_that_wait)
{
	is_used_up();
	says(2, "RATE n " ONE " wait=1m");
	hears_nothing(2);
	session_opens_as_admin(9, 0);
	says(9, "DRAIN");
	hears(9, "OK *");
	hears(2, "ERR DRAINING *");
	says(3, "RATE n " ONE " wait=1m");
	hears(3, "ERR DRAINING *");
	cluster_close();
}

TEST(without_the_home_a_use_that_waits_is_refused)
{
	is_used_up();
	says(2, "RATE n " ONE " wait=1m");
	falls(0);
	passes(11 * SEC);
	hears(2, "ERR UNAVAILABLE *");
	cluster_close();
}

/* A wait that is over while the home is asked ends with its answer, also if that comes to the next process. */
TEST(a_wait_that_is_over_ends_after_a_restart_too)
{
	is_used_up();
	feels(0, MOOD_SILENT);
	says(2, "RATE n " ONE " wait=20ms");
	passes(30 * MSEC);
	hears_nothing(2);
	daemon_hands_over(0, NULL);
	feels(0, MOOD_WELL);
	passes(3 * SEC);
	hears(2, "TIMEOUT *");
	cluster_close();
}

TEST(a_session_has_no_more_waits_than_limits_waiting)
{
	struct core_conf conf;

	is_used_up();
	conf = cluster.daemon[0].conf;
	conf.limits.waiting = 2;
	service_reload(cluster.daemon[0].service, &conf);
	says(2, "@a RATE n " ONE " wait=1m");
	says(2, "@b RATE n " ONE " wait=1m");
	says(2, "@c RATE n " ONE " wait=1m");
	hears(2, "@c ERR LIMIT *limits.waiting*");
	says(2, "@a PING");
	hears(2, "@a ERR TAGINUSE *");
	cluster_close();
}

/* All its memory is free: an assertion of the pools says so. */
TEST(a_service_ends_while_uses_wait)
{
	is_used_up();
	says(2, "RATE n " ONE " wait=1m");
	says(3, "RATE n " ONE " wait=1m");
	daemon_returns(0);
	passes(SEC);
	cluster_close();
}
