/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/group/groups.c: what a group or a TAKE is granted closes a deadlock over several daemons. */
#include "tests/fixture/mail_queue.h"

#include <check.h>

/* Session 2 at daemon 1 holds y. Session 1 at daemon 0, which holds nothing, waits for y, as this owner. */
static void waits_for_y(const char *owner)
{
	two_daemons(3);
	session_opens(1, 0);
	says(2, "LOCK y");
	hears(2, "OK name=y *");
	says(1, "@1 LOCK y%s wait=forever", owner);
	passes(20 * SEC);
	ck_assert_uint_eq(asked(CALL_TABLE), 0);
}

/* Session 1 has got x meanwhile. */
static void waits_for_x(void)
{
	says(2, "LOCK x wait=forever");
	passes(FOUND_US);
	hears(2, "ERR DEADLOCK cycle=x@h0<-y@h1<-x@h0");
	hears_nothing(1);
	says(2, "UNLOCK y");
	hears(2, "OK *");
	passes(2 * SEC);
	hears(1, "@1 OK name=y *");
	cluster_close();
}

/* patient: others hold x at first. */
static void gets_by(int patient, const char *request)
{
	waits_for_y("");
	if (patient) {
		session_opens(3, 1);
		says(3, "LOCKALL x z");
		passes(SEC);
		ck_assert_uint_eq(ignores(3), 3);
	}
	says(1, "@2 %s%s", request, patient ? " wait=forever" : "");
	if (patient) {
		passes(SEC);
		goes(3, GONE_HANGUP);
		passes(SEC);
	}
}

LOOP_TEST(a_LOCKALL_that_is_granted_closes_it, 2)
{
	gets_by(_i, "LOCKALL x w");
	hears(1, "@2 \\* name=x *");
	hears(1, "@2 \\* name=w *");
	hears(1, "@2 OK n=2");
	waits_for_x();
}

LOOP_TEST(a_LOCKANY_that_is_granted_closes_it, 2)
{
	gets_by(_i, "LOCKANY x z");
	hears(1, "@2 OK name=x *");
	waits_for_x();
}

/* Loop: whether the job is in the queue at first. */
LOOP_TEST(a_TAKE_that_is_granted_its_lock_closes_it, 2)
{
	waits_for_y(" owner=job:mail/a");
	if (_i)
		says(1, "@2 TAKE mail wait=forever");
	session_opens(3, 0);
	says(3, "DEFER mail hello id=a lock=x");
	hears(3, "OK *");
	if (!_i)
		says(1, "@2 TAKE mail");
	hears(1, "@2 OK queue=mail job=a * name=x *");
	waits_for_x();
}

TEST(a_group_of_a_session_that_waits_for_nothing_costs_nothing)
{
	two_daemons(3);
	session_opens(1, 0);
	says(1, "LOCKALL x w");
	ck_assert_uint_eq(ignores(1), 3);
	says(1, "LOCKANY y z");
	hears(1, "OK name=y *");
	passes(20 * SEC);
	ck_assert_uint_eq(asked(CALL_TABLE), 0);
	cluster_close();
}
