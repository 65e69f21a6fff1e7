/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/pushes.c: pushes that nobody asks for, against a scripted daemon. */
#include "client/lib/redlock.h"
#include "tests/fixture/fake_daemon.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MANY 5000 /* more than are kept */

/* The answer to PING comes behind all of them. */
static struct redlock *pushed(struct fake_daemon *f, const char *first, const char *each)
{
	static char script[MANY * 64];
	size_t n = (size_t)sprintf(script, "< PING\n%s", first);
	struct redlock *c = NULL;
	int i;

	for (i = 0; i < MANY; i++)
		n += (size_t)sprintf(script + n, "> ! %s name=m%d fence=%d\n", each, i, i + 2);
	sprintf(script + n, "> OK\n=\n");
	fake_daemon_begin(f, script);
	ck_assert_int_eq(redlock_open(f->addr, 5000, &c), 0);
	return c;
}

TEST(the_oldest_risks_go_and_no_loss)
{
	const struct redlock_line *push;
	struct fake_daemon f;
	struct redlock *c = pushed(&f, "> ! RISK name=a fence=1\n> ! LOST name=a fence=1 reason=quorum\n", "RISK");

	ck_assert_int_eq(redlock_request(c, "PING", 0, NULL, NULL), 0);
	push = redlock_next_push(c);
	ck_assert(push && redlock_line_code(push).n == 4 && !memcmp(redlock_line_code(push).p, "LOST", 4));
	push = redlock_next_push(c);
	ck_assert(push && redlock_line_number(push, "fence", 0) > 2);
	while (redlock_line_number(push, "fence", 0) != MANY + 1)
		ck_assert_ptr_nonnull(push = redlock_next_push(c));
	ck_assert_ptr_null(redlock_next_push(c));
	redlock_close(c);
	fake_daemon_end(&f);
}

/* Whoever watches and does not read learns that events are missing, before those that are left. */
TEST(the_oldest_events_go_before_all_others_and_that_is_told)
{
	const struct redlock_line *push;
	struct fake_daemon f;
	struct redlock *c = pushed(&f, "> ! RISK name=a fence=1\n> ! DRAIN in_ms=-1\n", "EVENT");
	int events = 0;

	ck_assert_int_eq(redlock_request(c, "PING", 0, NULL, NULL), 0);
	ck_assert(redlock_line_is(redlock_next_push(c), "MISSED"));
	ck_assert(redlock_line_is(redlock_next_push(c), "RISK"));
	ck_assert(redlock_line_is(redlock_next_push(c), "DRAIN"));
	while ((push = redlock_next_push(c))) {
		ck_assert(redlock_line_is(push, "EVENT"));
		events++;
	}
	ck_assert_int_eq(events, 4094);
	redlock_close(c);
	fake_daemon_end(&f);
}

TEST(losses_beyond_all_that_is_kept_break_the_connection)
{
	struct fake_daemon f;
	struct redlock *c = pushed(&f, "", "LOST");

	ck_assert_int_eq(redlock_request(c, "PING", 0, NULL, NULL), -ENOBUFS);
	redlock_close(c);
	fake_daemon_break(&f);
}
