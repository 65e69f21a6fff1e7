/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/inquire.c, strangers.c, busy.c, show.c: what clients are told about a holder of another daemon. */
#include "tests/fixture/cluster.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>

#define KNOWN_BUSY "BUSY name=a holder=@h0 who=\"worker 7 pid=* uid=*\" held_ms=* note=\"nightly export\" waiters=0 retry_ms=*"

/* Session 1 holds `a` at daemon 0 for 2 s. Session 2 is at daemon 1. */
static void two_hosts_of(unsigned nodes)
{
	cluster_open(nodes);
	cluster.conf.inquires = true;
	daemon_starts(0);
	passes(2 * SEC);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(2, 1);
	says(1, "HELLO 1 name=\"worker 7\"");
	hears(1, "OK *");
	says(1, "LOCK a note=\"nightly export\"");
	hears(1, "OK *");
	passes(2 * SEC);
}

static void two_hosts(void)
{
	two_hosts_of(3);
}

static void becomes_absent(unsigned d)
{
	cluster.daemon[d].absent = true;
}

START_TEST(BUSY_tells_who_holds_a_lock_of_another_host)
{
	two_hosts_of(1);
	says(2, "LOCK a");
	ck_assert_int_eq(number_in(hears(2, KNOWN_BUSY), "held_ms"), 2000);
	ck_assert_uint_eq(asked(CALL_TELL), 2);
	hears_nothing(2);
}
END_TEST

START_TEST(so_does_TIMEOUT_and_the_row_of_SHOW)
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
END_TEST

START_TEST(a_holder_behind_TCP_is_shown_by_its_address_and_an_owner_by_its_name)
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
END_TEST

START_TEST(a_reader_is_told_as_well)
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
END_TEST

START_TEST(a_part_of_LOCKALL_is_told_with_the_client_that_has_it)
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
END_TEST

/* A question and its answer, and no more for a second, however many are refused. */
START_TEST(a_daemon_is_asked_once_a_second)
{
	two_hosts();
	for (unsigned i = 0; i < 50; i++) {
		says(2, "LOCK a");
		hears(2, KNOWN_BUSY);
		passes(15 * MSEC);
	}
	ck_assert_uint_eq(asked(CALL_TELL), 2);
	passes(SEC);
	says(2, "LOCK a");
	hears(2, KNOWN_BUSY);
	ck_assert_uint_eq(asked(CALL_TELL), 4);
}
END_TEST

START_TEST(nobody_is_asked_about_a_lock_that_is_free_or_held_here)
{
	two_hosts();
	says(2, "LOCK b");
	hears(2, "OK *");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	says(1, "SHOW a");
	ignores(1);
	session_opens(3, 0);
	says(3, "LOCK a");
	hears(3, "BUSY name=a holder=\"worker 7 pid=*\" *");
	ck_assert_uint_eq(asked(CALL_TELL), 0);
}
END_TEST

START_TEST(what_was_told_is_forgotten_after_a_few_seconds)
{
	two_hosts();
	says(2, "LOCK a");
	hears(2, KNOWN_BUSY);
	cluster.daemon[0].deaf = true;
	passes(2900 * MSEC);
	says(2, "LOCK a");
	ck_assert_int_eq(number_in(hears(2, KNOWN_BUSY), "held_ms"), 4900);
	passes(200 * MSEC);
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 held_ms=* waiters=0 *");
}
END_TEST

START_TEST(what_was_told_of_one_hold_is_not_told_of_the_next)
{
	two_hosts();
	says(2, "LOCK a");
	hears(2, KNOWN_BUSY);
	passes(150 * MSEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	session_opens_from_afar(3, 0);
	says(3, "LOCK a");
	hears(3, "OK *");
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 held_ms=0 waiters=0 *"); /* it is too early to ask again */
	passes(50 * MSEC);
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 who=10.0.0.5:40000 held_ms=50 waiters=0 *");
}
END_TEST

/* A message is lost, or that daemon is of an earlier version. */
START_TEST(a_refusal_is_held_back_for_milliseconds_and_only_once)
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
END_TEST

START_TEST(SHOW_waits_for_as_long_as_a_call_may_take)
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
END_TEST

START_TEST(a_daemon_that_does_not_listen_is_not_waited_for)
{
	two_hosts();
	becomes_absent(0);
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 held_ms=2000 waiters=0 retry_ms=*");
	ck_assert_uint_eq(asked(CALL_TELL), 3); /* at no store */
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=2000 ttl_ms=*");
	hears(2, "OK n=1");
}
END_TEST

START_TEST(a_waiter_that_SHOW_finds_is_shown_with_the_holder)
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
END_TEST

static void tells(unsigned d, const char *text)
{
	struct event event = {.kind = EVENT_TOLD, .message = {.node = 0, .name = span_of(text)}};

	ck_assert_int_eq(daemon_step(d, &event), 0);
	runs();
}

static void asks(unsigned d, unsigned node, const char *text)
{
	struct event event = {.kind = EVENT_ASKED, .message = {.node = node, .name = span_of(text)}};

	ck_assert_int_eq(daemon_step(d, &event), 0);
	runs();
}

/* The daemon id that messages of daemon d begin with, and the name: "33:<id>1:a". */
static const char *card_text(unsigned d, const char *rest)
{
	static char text[256];
	const char *id = service_daemon_id(cluster.daemon[d].service);

	snprintf(text, sizeof(text), "%zu:%s%s", strlen(id), id, rest);
	return text;
}

START_TEST(only_what_was_asked_for_is_believed)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "LOCK a");
	tells(1, "");
	tells(1, "4:ab.h1:a1:12:401:x0:2:-12:-10:0:"); /* not who was asked */
	tells(1, card_text(0, "1:a6:9999992:401:x0:2:-12:-10:0:")); /* of another value */
	tells(1, card_text(0, "1:b1:12:401:x0:2:-12:-10:0:")); /* of another name */
	hears_nothing(2);
	passes(15 * MSEC);
	hears(2, "BUSY name=a holder=@h0 held_ms=2010 waiters=0 retry_ms=*");
	tells(0, card_text(0, "1:a1:12:401:x0:2:-12:-10:0:")); /* it has asked nobody */
}
END_TEST

START_TEST(who_asks_for_what_is_not_held_here_gets_no_answer)
{
	two_hosts();
	asks(0, 0, "");
	asks(0, 0, "4:ab.h1:b1:1");       /* it is free */
	asks(0, 0, "4:ab.h1:a6:999999");  /* not by this value */
	asks(0, 99, "4:ab.h1:a1:1");
	asks(0, 0, card_text(0, "1:a1:1")); /* itself */
	ck_assert_uint_eq(asked(CALL_TELL), 0);
}
END_TEST

START_TEST(questions_without_end_are_not_all_answered)
{
	char question[64];
	unsigned before, number = 0;

	two_hosts();
	while (asked(CALL_TELL) == 0 && number < 100) {
		snprintf(question, sizeof(question), "4:ab.h1:a%d:%u", number < 10 ? 1 : 2, number);
		asks(0, 0, question);
		number++;
	}
	ck_assert_uint_eq(asked(CALL_TELL), 1);
	for (unsigned i = 0; i < 1000; i++)
		asks(0, 0, question);
	ck_assert_uint_eq(asked(CALL_TELL), 256);
	before = asked(CALL_TELL);
	passes(SEC);
	asks(0, 0, question);
	ck_assert_uint_eq(asked(CALL_TELL), before + 1);
}
END_TEST

START_TEST(what_another_says_is_quoted)
{
	two_hosts();
	says(1, "UNLOCK a");
	hears(1, "OK *");
	says(1, "LOCK a note=\"a\\nOK n=1\"");
	hears(1, "OK *");
	says(2, "LOCK a");
	hears(2, "BUSY name=a * note=\"a\\\\nOK n=1\" waiters=0 *");
	hears_nothing(2);
}
END_TEST

START_TEST(many_names_are_asked_about_within_bounds)
{
	two_hosts();
	for (unsigned i = 0; i < 200; i++) {
		says(1, "LOCK n%u", i);
		hears(1, "OK *");
	}
	for (unsigned i = 0; i < 200; i++) {
		says(2, "LOCK n%u", i);
		hears(2, i < 128 ? "BUSY name=n* holder=@h0 who=*" : "BUSY name=n* holder=@h0 held_ms=*");
	}
	passes(SEC);
	for (unsigned i = 200; i-- > 100;) {
		says(2, "LOCK n%u", i);
		hears(2, "BUSY name=n* holder=@h0 who=*");
	}
}
END_TEST

START_TEST(a_client_that_leaves_is_told_what_it_waits_for_and_one_that_has_gone_is_forgotten)
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
END_TEST

START_TEST(a_request_behind_one_that_is_held_back_waits_for_it)
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
END_TEST

START_TEST(a_stop_answers_what_is_held_back)
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
END_TEST

START_TEST(a_daemon_may_end_while_it_waits_for_an_answer)
{
	two_hosts();
	feels(0, MOOD_SILENT);
	says(2, "LOCK a");
	daemon_ends(1);
	feels(0, MOOD_WELL);
}
END_TEST

START_TEST(a_store_that_says_nothing_is_passed_over)
{
	two_hosts();
	feels(1, MOOD_SILENT); /* the one that is asked first */
	says(2, "LOCK a");
	passes(60 * MSEC);
	hears(2, "BUSY name=a *");
	passes(SEC);
	says(2, "SHOW a");
	passes(60 * MSEC);
	hears(2, "\\* role=holder pos=0 holder=@h0 *");
	hears(2, "OK n=1");
	passes(SEC);
	says(2, "SHOW a");
	passes(60 * MSEC);
	hears(2, "\\* role=holder pos=0 holder=@h0 name=\"worker 7\" *");
	hears(2, "OK n=1");
	feels(1, MOOD_WELL);
}
END_TEST

START_TEST(a_semaphore_is_not_asked_about)
{
	two_hosts();
	says(1, "ACQUIRE s limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE s limit=1");
	hears(2, "BUSY *");
	says(2, "LOCK s");
	hears(2, "ERR KIND *");
	says(2, "SHOW s");
	hears(2, "\\* role=holder pos=0 holder=@h0 *");
	hears(2, "OK *");
	ck_assert_uint_eq(asked(CALL_TELL), 0);
}
END_TEST

Suite *inquire_suite(void)
{
	Suite *suite = suite_create("inquire");
	TCase *told = tcase_create("told"), *bounds = tcase_create("bounds");

	tcase_add_checked_fixture(told, NULL, cluster_close);
	tcase_add_test(told, BUSY_tells_who_holds_a_lock_of_another_host);
	tcase_add_test(told, so_does_TIMEOUT_and_the_row_of_SHOW);
	tcase_add_test(told, a_holder_behind_TCP_is_shown_by_its_address_and_an_owner_by_its_name);
	tcase_add_test(told, a_reader_is_told_as_well);
	tcase_add_test(told, a_part_of_LOCKALL_is_told_with_the_client_that_has_it);
	tcase_add_test(told, a_waiter_that_SHOW_finds_is_shown_with_the_holder);
	tcase_add_test(told, what_another_says_is_quoted);
	suite_add_tcase(suite, told);
	tcase_add_checked_fixture(bounds, NULL, cluster_close);
	tcase_add_test(bounds, a_daemon_is_asked_once_a_second);
	tcase_add_test(bounds, nobody_is_asked_about_a_lock_that_is_free_or_held_here);
	tcase_add_test(bounds, what_was_told_is_forgotten_after_a_few_seconds);
	tcase_add_test(bounds, what_was_told_of_one_hold_is_not_told_of_the_next);
	tcase_add_test(bounds, a_refusal_is_held_back_for_milliseconds_and_only_once);
	tcase_add_test(bounds, SHOW_waits_for_as_long_as_a_call_may_take);
	tcase_add_test(bounds, a_daemon_that_does_not_listen_is_not_waited_for);
	tcase_add_test(bounds, only_what_was_asked_for_is_believed);
	tcase_add_test(bounds, who_asks_for_what_is_not_held_here_gets_no_answer);
	tcase_add_test(bounds, questions_without_end_are_not_all_answered);
	tcase_add_test(bounds, many_names_are_asked_about_within_bounds);
	tcase_add_test(bounds, a_client_that_leaves_is_told_what_it_waits_for_and_one_that_has_gone_is_forgotten);
	tcase_add_test(bounds, a_request_behind_one_that_is_held_back_waits_for_it);
	tcase_add_test(bounds, a_stop_answers_what_is_held_back);
	tcase_add_test(bounds, a_daemon_may_end_while_it_waits_for_an_answer);
	tcase_add_test(bounds, a_store_that_says_nothing_is_passed_over);
	tcase_add_test(bounds, a_semaphore_is_not_asked_about);
	suite_add_tcase(suite, bounds);
	return suite;
}
