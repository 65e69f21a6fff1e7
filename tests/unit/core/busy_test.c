/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/busy.c, show.c: what clients are told about a holder of another daemon, and when. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/two_hosts.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

FIXTURE(.teardown = cluster_close)

TEST(BUSY_tells_who_holds_a_lock_of_another_host)
{
	two_hosts_of(1);
	says(2, "LOCK a");
	ck_assert_int_eq(number_in(hears(2, KNOWN_BUSY), "held_ms"), 2000);
	ck_assert_uint_eq(asked(CALL_TELL), 2);
	hears_nothing(2);
}

TEST(TIMEOUT_and_the_row_of_SHOW_tell_who_holds_elsewhere)
{
	const char *line;

	two_hosts();
	says(2, "LOCK a wait=5s");
	passes(5 * SEC);
	line = hears(2, "TIMEOUT name=a waited_ms=5000 holder=@h0 who=\"worker 7 pid=* uid=*\" held_ms=* note=\"nightly export\" waiters=0");
	ck_assert_int_ge(number_in(line, "held_ms"), 6990);
	ck_assert_int_le(number_in(line, "held_ms"), 7000);
	passes(5 * SEC);
	says(2, "@s SHOW a");
	line = hears(2, "@s \\* role=holder pos=0 holder=@h0 name=\"worker 7\" peer=unix pid=* uid=* held_ms=* ttl_ms=* note=\"nightly export\"");
	ck_assert_int_ge(number_in(line, "held_ms"), 11990);
	hears(2, "@s OK n=1");
}

TEST(a_holder_behind_TCP_is_shown_by_its_address_and_an_owner_by_its_name)
{
	two_hosts();
	session_opens_from_afar(3, 0);
	says(3, "LOCK b owner=t1");
	hears(3, "OK *");
	says(2, "LOCK b");
	hears(2, "BUSY name=b holder=@h0 who=10.0.0.5:40000 held_ms=0 waiters=0 *");
	says(2, "SHOW b");
	hears(2, "\\* role=holder pos=0 holder=@h0 peer=10.0.0.5:40000 held_ms=0 ttl_ms=10000 owner=t1");
	hears(2, "OK n=1");
}

TEST(a_reader_is_told_as_well)
{
	two_hosts();
	says(1, "LOCK b mode=shared note=reads");
	hears(1, "OK *");
	says(2, "LOCK b");
	hears(2, "BUSY name=b holder=@h0 who=\"worker 7 pid=* uid=*\" held_ms=0 note=reads mode=shared waiters=0 *");
	says(2, "SHOW b");
	hears(2, "\\* role=holder pos=0 holder=@h0 name=\"worker 7\" * mode=shared note=reads");
	hears(2, "OK n=1");
}

TEST(a_part_of_LOCKALL_is_told_with_the_client_that_has_it)
{
	two_hosts();
	says(1, "LOCKALL b c note=both");
	hears(1, "\\* *");
	hears(1, "\\* *");
	hears(1, "OK *");
	says(2, "LOCK c");
	hears(2, "BUSY name=c holder=@h0 who=\"worker 7 pid=* uid=*\" * note=both *");
	/* A LOCKALL is not held back, and tells what is known, though it asks as well. */
	passes(SEC);
	says(2, "LOCKALL c d");
	hears(2, "BUSY name=c holder=@h0 who=\"worker 7 pid=* uid=*\" * note=both *");
}

TEST(a_job_with_long_names_is_told_as_well)
{
	char queue[NAME_MAX_BYTES + 1];

	memset(queue, 'q', NAME_MAX_BYTES);
	queue[NAME_MAX_BYTES] = '\0';
	two_hosts();
	says(1, "DEFER %s work lock=b", queue);
	hears(1, "OK *");
	says(1, "TAKE %s", queue);
	passes(MSEC);
	hears(1, "OK queue=* job=*");
	says(2, "LOCK b");
	hears(2, "BUSY name=b holder=@h0 who=\"worker 7 pid=* uid=*\" *");
}

TEST(a_waiter_that_SHOW_finds_is_shown_with_the_holder)
{
	two_hosts();
	says(2, "@w LOCK a wait=1m");
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 name=\"worker 7\" peer=unix pid=* note=\"nightly export\"");
	hears(2, "\\* role=waiter pos=1 *");
	hears(2, "OK n=2");
	ck_assert_uint_eq(asked(CALL_LOOK), 0);
	cluster.daemon[0].deaf = true;
	passes(8 * SEC);
	says(2, "SHOW a");
	passes(50 * MSEC);
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=*");
	hears(2, "\\* role=waiter pos=1 *");
	hears(2, "OK n=2");
}

/* --- held back --- */

/* For so long all requests together have waited that were answered BUSY, as STATS says to session k. */
static void busy_took(unsigned k, int64_t us)
{
	const char *line;

	says(k, "STATS");
	do
		line = next_line(k);
	while (line && !(strstr(line, "metric=acquire_wait_seconds_sum ") && strstr(line, " result=busy")));
	ck_assert_ptr_nonnull(line);
	ck_assert_int_eq(llround(strtod(strstr(line, "value=") + 6, NULL) * SEC), us);
	ignores(k);
}

TEST(SHOW_waits_for_as_long_as_a_call_may_take)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "SHOW a");
	passes(49 * MSEC);
	hears_nothing(2);
	passes(2 * MSEC);
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=* ttl_ms=*");
	hears(2, "OK n=1");
}

/* A message is lost, or that daemon is of an earlier version. */
TEST(a_refusal_is_held_back_for_milliseconds_and_only_once)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "LOCK a");
	says(2, "@b LOCK a");
	passes(9 * MSEC);
	hears_nothing(2);
	passes(6 * MSEC);
	hears(2, "BUSY name=a holder=@h0 held_ms=2010 waiters=0 retry_ms=*");
	hears(2, "@b BUSY name=a holder=@h0 held_ms=2010 waiters=0 retry_ms=*");
	busy_took(2, 2 * 10 * MSEC);
	for (unsigned i = 0; i < 3; i++) {
		passes(SEC);
		says(2, "LOCK a");
		hears(2, "BUSY name=a holder=@h0 held_ms=* waiters=0 retry_ms=*");
	}
	cluster.daemon[0].deaf = false;
	passes(SEC);
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 held_ms=* waiters=0 retry_ms=*");
	says(2, "LOCK a");
	hears(2, KNOWN_BUSY);
}

TEST(a_client_that_leaves_is_told_what_it_waits_for_and_one_that_has_gone_is_forgotten)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	session_opens(3, 1);
	session_opens(4, 1);
	says(2, "LOCK a");
	says(3, "LOCK a");
	says(4, "LOCK a");
	half_closes(2);
	goes(3, GONE_RESET);
	ck_assert(!hung_up(2));
	passes(15 * MSEC);
	hears(2, "BUSY name=a *");
	ck_assert(hung_up(2));
	hears(4, "BUSY name=a *");
}

TEST(a_request_behind_one_that_is_held_back_waits_for_it)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "LOCK a");
	says(2, "PING");
	says(2, "@t PING");
	hears(2, "@t OK");
	hears_nothing(2);
	passes(15 * MSEC);
	hears(2, "BUSY name=a *");
	hears(2, "OK");
}

TEST(a_stop_answers_what_is_held_back)
{
	struct event stop = {.kind = EVENT_STOP};

	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "LOCK a");
	ck_assert_int_eq(daemon_step(1, &stop), 0);
	hears(2, "ERR DRAINING *");
	ck_assert(hung_up(2));
	daemon_ends(1);
}
