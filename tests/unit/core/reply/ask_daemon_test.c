/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/remote_holders.c, remote_holders.c: whom a daemon asks about a holder of another, how often, and what it believes. */
#include "tests/fixture/two_hosts.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>

static void becomes_absent(unsigned d)
{
	cluster.daemon[d].absent = true;
}

FIXTURE(.teardown = cluster_close)

/* A question and its answer, and no more for a second, however many ask. */
TEST(a_daemon_is_asked_once_a_second)
{
	two_hosts();
	for (unsigned i = 0; i < 50; i++) {
		is_shown("a", KNOWN_ROW);
		passes(15 * MSEC);
	}
	ck_assert_uint_eq(asked(CALL_PUBLISH), 2);
	passes(SEC);
	is_shown("a", KNOWN_ROW);
	ck_assert_uint_eq(asked(CALL_PUBLISH), 4);
}

TEST(nobody_is_asked_about_a_lock_that_is_free_or_held_here)
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
	ck_assert_uint_eq(asked(CALL_PUBLISH), 0);
}

TEST(what_was_told_is_forgotten_after_a_few_seconds)
{
	two_hosts();
	is_shown("a", KNOWN_ROW);
	cluster.daemon[0].deaf = true;
	passes(2900 * MSEC);
	says(2, "LOCK a");
	ck_assert_int_eq(number_in(hears(2, KNOWN_BUSY), "held_ms"), 4900);
	passes(200 * MSEC);
	says(2, "LOCK a");
	hears(2, UNKNOWN_BUSY);
}

TEST(what_was_told_of_one_hold_is_not_told_of_the_next)
{
	two_hosts();
	is_shown("a", KNOWN_ROW);
	passes(150 * MSEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	session_opens_from_afar(3, 0);
	says(3, "LOCK a");
	hears(3, "OK *");
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 held_ms=0 waiters=0 *");
	passes(50 * MSEC);
	is_shown("a", "\\* role=holder pos=0 holder=@h0 peer=10.0.0.5:40000 held_ms=50 ttl_ms=*");
}

TEST(a_daemon_that_does_not_listen_is_not_waited_for)
{
	two_hosts();
	becomes_absent(0);
	is_shown("a", UNKNOWN_ROW);
	ck_assert_uint_eq(asked(CALL_PUBLISH), 3); /* at no store */
}

static void tells(unsigned d, const char *text)
{
	struct event event = {.kind = EVENT_CARD, .message = {.node = 0, .name = span_of(text)}};

	ck_assert_int_eq(daemon_step(d, &event), 0);
	runs();
}

static void asks(unsigned d, unsigned node, const char *text)
{
	struct event event = {.kind = EVENT_QUESTION, .message = {.node = node, .name = span_of(text)}};

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

TEST(only_what_was_asked_for_is_believed)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "SHOW a");
	tells(1, "");
	tells(1, "4:ab.h1:a1:12:401:x0:2:-12:-10:0:"); /* not who was asked */
	tells(1, card_text(0, "1:a6:9999992:401:x0:2:-12:-10:0:")); /* of another value */
	tells(1, card_text(0, "1:b1:12:401:x0:2:-12:-10:0:")); /* of another name */
	hears_nothing(2);
	passes(51 * MSEC);
	hears(2, UNKNOWN_ROW);
	hears(2, "OK n=1");
	tells(0, card_text(0, "1:a1:12:401:x0:2:-12:-10:0:")); /* it has asked nobody */
}

TEST(who_asks_for_what_is_not_held_here_gets_no_answer)
{
	two_hosts();
	asks(0, 0, "");
	asks(0, 0, "4:ab.h1:b1:1");       /* it is free */
	asks(0, 0, "4:ab.h1:a6:999999");  /* not by this value */
	asks(0, 99, "4:ab.h1:a1:1");
	asks(0, 0, card_text(0, "1:a1:1")); /* itself */
	ck_assert_uint_eq(asked(CALL_PUBLISH), 0);
}

TEST(questions_without_end_are_not_all_answered)
{
	char question[64];
	unsigned before, number = 0;

	two_hosts();
	while (asked(CALL_PUBLISH) == 0 && number < 100) {
		snprintf(question, sizeof(question), "4:ab.h1:a%d:%u", number < 10 ? 1 : 2, number);
		asks(0, 0, question);
		number++;
	}
	ck_assert_uint_eq(asked(CALL_PUBLISH), 1);
	for (unsigned i = 0; i < 1000; i++)
		asks(0, 0, question);
	ck_assert_uint_eq(asked(CALL_PUBLISH), 256);
	before = asked(CALL_PUBLISH);
	passes(SEC);
	asks(0, 0, question);
	ck_assert_uint_eq(asked(CALL_PUBLISH), before + 1);
}

TEST(what_another_says_is_quoted)
{
	two_hosts();
	says(1, "UNLOCK a");
	hears(1, "OK *");
	says(1, "LOCK a note=\"a\\nOK n=1\"");
	hears(1, "OK *");
	is_shown("a", "\\* role=holder pos=0 holder=@h0 * note=\"a\\\\nOK n=1\"");
	hears_nothing(2);
}

TEST(many_names_are_asked_about_within_bounds)
{
	two_hosts();
	for (unsigned i = 0; i < 200; i++) {
		says(1, "LOCK n%u", i);
		hears(1, "OK *");
	}
	for (unsigned i = 0; i < 200; i++) {
		says(2, "SHOW n%u", i);
		hears(2, i < 128 ? "\\* role=holder pos=0 holder=@h0 name=*" : UNKNOWN_ROW);
		hears(2, "OK n=1");
	}
	passes(SEC);
	for (unsigned i = 200; i-- > 100;) {
		says(2, "SHOW n%u", i);
		hears(2, "\\* role=holder pos=0 holder=@h0 name=*");
		hears(2, "OK n=1");
	}
}

TEST(a_daemon_may_end_while_it_waits_for_an_answer)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "SHOW a");
	hears_nothing(2);
	daemon_ends(1);
}

TEST(a_store_that_says_nothing_is_passed_over)
{
	two_hosts();
	feels(1, MOOD_SILENT); /* the one that is asked first */
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

TEST(a_semaphore_is_not_asked_about)
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
	ck_assert_uint_eq(asked(CALL_PUBLISH), 0);
}

/* --- held back --- */

TEST(SHOW_waits_for_as_long_as_a_call_may_take)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "SHOW a");
	passes(49 * MSEC);
	hears_nothing(2);
	passes(2 * MSEC);
	hears(2, UNKNOWN_ROW);
	hears(2, "OK n=1");
}

TEST(a_client_that_leaves_is_shown_what_it_waits_for_and_one_that_has_gone_is_forgotten)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	session_opens(3, 1);
	session_opens(4, 1);
	says(2, "SHOW a");
	says(3, "SHOW a");
	says(4, "SHOW a");
	half_closes(2);
	goes(3, GONE_RESET);
	ck_assert(!hung_up(2));
	passes(51 * MSEC);
	hears(2, UNKNOWN_ROW);
	hears(2, "OK n=1");
	ck_assert(hung_up(2));
	hears(4, UNKNOWN_ROW);
}

TEST(a_request_behind_one_that_is_held_back_waits_for_it)
{
	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "SHOW a");
	says(2, "PING");
	says(2, "@t PING");
	hears(2, "@t OK");
	hears_nothing(2);
	passes(51 * MSEC);
	hears(2, UNKNOWN_ROW);
	hears(2, "OK n=1");
	hears(2, "OK");
}

TEST(a_stop_answers_what_is_held_back)
{
	struct event stop = {.kind = EVENT_STOP};

	two_hosts();
	cluster.daemon[0].deaf = true;
	says(2, "SHOW a");
	ck_assert_int_eq(daemon_step(1, &stop), 0);
	hears(2, "ERR DRAINING *");
	ck_assert(hung_up(2));
	daemon_ends(1);
}
