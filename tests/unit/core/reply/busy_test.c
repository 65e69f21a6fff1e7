/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/show.c, show.c: what clients are told about a holder of another daemon. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/two_hosts.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(BUSY_is_told_at_once_and_asks_nobody)
{
	two_hosts();
	says(2, "LOCK a");
	ck_assert_int_eq(number_in(hears(2, UNKNOWN_BUSY), "held_ms"), 2000);
	says(2, "LOCKALL a b");
	hears(2, UNKNOWN_BUSY);
	says(2, "LOCK a wait=5s");
	passes(5 * SEC);
	hears(2, "TIMEOUT name=a waited_ms=5000 holder=@h0 held_ms=* waiters=0");
	ck_assert_uint_eq(asked(CALL_PUBLISH), 0);
}

TEST(BUSY_and_TIMEOUT_tell_what_a_SHOW_has_learnt)
{
	const char *line;

	two_hosts_of(1);
	is_shown("a", KNOWN_ROW);
	passes(SEC);
	says(2, "LOCK a");
	ck_assert_int_eq(number_in(hears(2, KNOWN_BUSY), "held_ms"), 3000);
	says(2, "LOCKALL a b");
	hears(2, KNOWN_BUSY);
	says(2, "LOCK a wait=1s");
	passes(SEC);
	line = hears(2, "TIMEOUT name=a waited_ms=1000 holder=@h0 who=\"worker 7 pid=* uid=*\" held_ms=* note=\"nightly export\" waiters=0");
	ck_assert_int_eq(number_in(line, "held_ms"), 4000);
	ck_assert_uint_eq(asked(CALL_PUBLISH), 2);
}

TEST(a_holder_behind_TCP_is_shown_by_its_address_and_an_owner_by_its_name)
{
	two_hosts();
	session_opens_from_afar(3, 0);
	says(3, "LOCK b owner=t1");
	hears(3, "OK *");
	is_shown("b", "\\* role=holder pos=0 holder=@h0 peer=10.0.0.5:40000 held_ms=0 ttl_ms=10000 owner=t1");
	says(2, "LOCK b");
	hears(2, "BUSY name=b holder=@h0 who=10.0.0.5:40000 held_ms=0 waiters=0 *");
}

TEST(a_reader_is_told_as_well)
{
	two_hosts();
	says(1, "LOCK b mode=shared note=reads");
	hears(1, "OK *");
	is_shown("b", "\\* role=holder pos=0 holder=@h0 name=\"worker 7\" * mode=shared note=reads");
	says(2, "LOCK b");
	hears(2, "BUSY name=b holder=@h0 who=\"worker 7 pid=* uid=*\" held_ms=0 note=reads mode=shared waiters=0 *");
}

TEST(a_part_of_LOCKALL_is_told_with_the_client_that_has_it)
{
	two_hosts();
	says(1, "LOCKALL b c note=both");
	hears(1, "\\* *");
	hears(1, "\\* *");
	hears(1, "OK *");
	is_shown("c", "\\* role=holder pos=0 holder=@h0 name=\"worker 7\" peer=unix pid=* uid=* * note=both");
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
	is_shown("b", "\\* role=holder pos=0 holder=@h0 name=\"worker 7\" *");
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
	passes(51 * MSEC);
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=*");
	hears(2, "\\* role=waiter pos=1 *");
	hears(2, "OK n=2");
}
