/* SPDX-License-Identifier: BSD-2-Clause */
/* The field trace=: who is told of it, and what becomes of it. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/two_hosts.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define ONE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define TWO "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

static void is_audited(const char *beginning, const char *end)
{
	const char *line = cluster.daemon[0].audited;

	ck_assert_msg(strncmp(line, beginning, strlen(beginning)) == 0 && strstr(line, end), "%s", line);
}

FIXTURE(.teardown = cluster_close)

TEST(whoever_is_refused_is_told_the_trace_of_the_holder)
{
	cluster_begin(3);
	says(1, "LOCK a note=why trace=" ONE);
	hears(1, "OK *");
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=* held_ms=* note=why trace=" ONE " waiters=0 *");
	says(2, "LOCK a wait=1s trace=" TWO);
	says(3, "SHOW a");
	hears(3, "\\* role=holder * note=why trace=" ONE);
	hears(3, "\\* role=waiter * trace=" TWO);
	hears(3, "OK *");
	passes(SEC);
	hears(2, "TIMEOUT name=a * trace=" ONE " *");
	says(3, "ACQUIRE s limit=1 trace=" TWO);
	hears(3, "OK *");
	says(1, "ACQUIRE s limit=1");
	hears(1, "BUSY name=s * trace=" TWO);
	says(1, "SHOW s");
	hears(1, "\\* role=holder * trace=" TWO);
	hears(1, "OK *");
	says(2, "LOCKALL b c trace=" ONE);
	hears(2, "\\* *");
	hears(2, "\\* *");
	hears(2, "OK *");
	says(1, "LOCKANY c");
	hears(1, "BUSY name=c * trace=" ONE " *");
}

TEST(a_daemon_elsewhere_is_told_it)
{
	two_hosts();
	says(1, "LOCK b trace=" ONE);
	hears(1, "OK *");
	is_shown("b", "\\* role=holder pos=0 holder=@h0 * trace=" ONE);
	says(2, "LOCK b");
	hears(2, "BUSY name=b holder=@h0 * trace=" ONE " *");
}

TEST(events_the_slow_log_the_alarm_and_the_audit_log_have_it)
{
	cluster_open(3);
	cluster.conf.audit = true;
	cluster.conf.slow_hold_us = cluster.conf.slow_wait_us = cluster.conf.alarm_held_us = SEC;
	daemon_starts(0);
	passes(60 * SEC);
	for (unsigned k = 1; k < 4; k++)
		session_opens(k, 0);
	says(3, "WATCH");
	hears(3, "OK *");
	says(1, "LOCK a trace=" ONE);
	hears(1, "OK *");
	hears(3, "! EVENT kind=granted name=a * trace=" ONE);
	is_audited(",\"event\":\"granted\",\"name\":\"a\",", ",\"trace\":\"" ONE "\"}\n");
	says(2, "LOCK a wait=1m trace=" TWO);
	passes(2 * SEC);
	ck_assert(was_logged("alarm kind=held name=a * trace=" ONE));
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "OK *");
	ck_assert(was_logged("slow kind=wait name=a * outcome=granted trace=" TWO));
	passes(2 * SEC);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	ck_assert(was_logged("slow kind=hold name=a * outcome=released trace=" TWO));
	is_audited(",\"event\":\"released\",\"name\":\"a\",", ",\"trace\":\"" TWO "\"}\n");
}

TEST(a_trace_that_is_none_is_refused_and_nothing_is_locked)
{
	static const char *const wrong[] = {"", "x", ONE "0", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01", "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};

	cluster_begin(1);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		says(1, "LOCK a trace=%s", wrong[i]);
		hears(1, "ERR ARG *");
	}
	says(2, "LOCK a trace=" ONE);
	hears(2, "OK *");
	says(1, "UNLOCK a trace=" ONE);
	hears(1, "ERR ARG *");
}

TEST(it_survives_a_crash_and_a_restart)
{
	cluster_begin(3);
	says(1, "HELLO 1 grace=30s");
	ignores(1);
	says(1, "LOCK a note=n trace=" ONE);
	hears(1, "OK *");
	says(1, "ACQUIRE s limit=1 trace=" ONE);
	hears(1, "OK *");
	daemon_returns(0);
	session_opens(5, 0);
	passes(SEC);
	says(5, "SHOW a");
	hears(5, "\\* role=holder * note=n trace=" ONE);
	hears(5, "OK *");
	says(5, "SHOW s");
	hears(5, "\\* role=holder * trace=" ONE);
	hears(5, "OK *");
	says(5, "LOCK a wait=1m trace=" TWO);
	says(5, "@s ACQUIRE s limit=1 wait=1m trace=" TWO);
	session_opens(6, 0);
	daemon_hands_over(0, NULL);
	passes(SEC);
	says(6, "SHOW a");
	hears(6, "\\* role=holder * note=n trace=" ONE);
	hears(6, "\\* role=waiter * trace=" TWO);
	hears(6, "OK *");
}
