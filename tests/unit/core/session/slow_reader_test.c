/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/session/session.c, session.c: a client that sends requests faster than it reads answers. Lines wait, and EFFECT_AWAIT and EVENT_SENT say
 * when to go on.
 */
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <errno.h>
#include <string.h>

static unsigned pipeline_behind_a_wait(unsigned lines)
{
	held_and_waited_for();
	says(3, "LOCK a wait=2s");
	for (unsigned i = 0; i < lines; i++)
		says(3, "HELP");
	looks_away(3);
	passes(2 * SEC);
	hears(3, "TIMEOUT *");
	return unanswered(3);
}

FIXTURE(.teardown = cluster_close)

TEST(lines_that_were_read_ahead_wait_until_the_client_reads_its_answers)
{
	unsigned left = pipeline_behind_a_wait(200);

	ck_assert_uint_gt(left, 150);
	ck_assert_uint_lt(left, 200);
	passes(60 * SEC);
	ck_assert_uint_eq(unanswered(3), left);
	says(3, "CHECK a");
	ck_assert_uint_eq(unanswered(3), left + 1);
	looks_again(3);
	passes(0); /* a step serves so many lines */
	ck_assert_uint_eq(unanswered(3), 0);
	while (left-- > 0)
		while (strncmp(next_line(3), "OK n=", 5) != 0)
			;
	ignores(3);
	ignores(2);
}

TEST(reading_stops_while_lines_wait_for_their_reader_and_goes_on_behind_them)
{
	unsigned left = pipeline_behind_a_wait(200);

	ck_assert(is_read(3));
	for (; left < 256; left++)
		says(3, "HELP");
	ck_assert(!is_read(3));
	looks_again(3);
	passes(0); /* a step serves so many lines */
	ck_assert(is_read(3));
	ck_assert_uint_eq(unanswered(3), 0);
	ignores(3);
	ignores(2);
}

TEST(pushes_and_tagged_answers_do_not_wait_for_the_reader)
{
	cluster_begin(3);
	says(3, "LOCK b ttl=1s renew=no");
	hears(3, "OK name=b *");
	says(1, "LOCK a");
	says(3, "LOCK a wait=500ms");
	for (unsigned i = 0; i < 100; i++)
		says(3, "HELP");
	looks_away(3);
	passes(500 * MSEC);
	ck_assert_uint_gt(unanswered(3), 0);
	ignores(3);
	passes(SEC);
	hears(3, "! LOST name=b *");
	says(3, "@p PING");
	hears(3, "@p OK");
	looks_again(3);
	passes(0); /* a step serves so many lines */
	ck_assert_uint_eq(unanswered(3), 0);
	ignores(3);
	ignores(1);
}

LOOP_TEST(a_session_may_end_while_its_lines_wait_for_the_reader, 2)
{
	pipeline_behind_a_wait(200);
	ignores(3);
	if (_i)
		goes(3, GONE_HANGUP);
	half_closes(1);
	hears(2, GRANT);
	if (!_i) {
		half_closes(3);
		ck_assert(!hung_up(3));
		looks_again(3);
		passes(0); /* a step serves so many lines */
		ck_assert_uint_eq(unanswered(3), 0);
		ck_assert(hung_up(3));
	}
}

TEST(a_client_that_reads_its_answers_is_alive)
{
	held_and_waited_for();
	says(3, "HELLO 1 heartbeat=2s");
	says(3, "LOCK a wait=1s");
	for (unsigned i = 0; i < 100; i++)
		says(3, "HELP");
	looks_away(3);
	passes(1900 * MSEC);
	looks_again(3);
	passes(0); /* a step serves so many lines */
	passes(1900 * MSEC);
	ck_assert(!hung_up(3));
	passes(200 * MSEC);
	ck_assert(hung_up(3));
	ignores(3);
	ignores(2);
}

TEST(EVENT_SENT_for_a_session_that_nobody_awaits_is_ignored)
{
	struct event event = {.kind = EVENT_SENT, .session = {.id = 1}};

	cluster_begin(1);
	/* Much was answered, but nothing was read ahead, so no line waits. */
	for (unsigned i = 0; i < 20; i++)
		says(1, "HELP");
	looks_away(1);
	says(1, "LOCK a");
	ignores(1);
	event.now = cluster.now;
	ck_assert_int_eq(service_step(cluster.daemon[0].service, &event, &cluster.daemon[0].effects), -EINVAL);
	event.session.id = 7;
	ck_assert_int_eq(service_step(cluster.daemon[0].service, &event, &cluster.daemon[0].effects), -EINVAL);
}
