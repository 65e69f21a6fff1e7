/* SPDX-License-Identifier: BSD-2-Clause */
/* client/cli/command/request.c: what redlock drain says, how long it stays, and its options. */
#include "client/cli/io/invocation.h"
#include "tests/fixture/fake_daemon.h"

#include <check.h>
#include <string.h>

/* The command line is wrong, so nobody is called. */
static void refused(struct outcome *o, const char *const *argv)
{
	struct fake_daemon f;

	fake_daemon_begin(&f, "");
	redlock_run(&f, o, argv);
	fake_daemon_break(&f);
}

TEST(drain_says_what_is_waited_for)
{
	struct outcome o;

	PLAYED(&o, "< DRAIN$\n> OK locks=1 in_ms=-1\n=\n", "drain");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "the daemon grants nothing new; it stops when nobody holds anything (1 lock is held)\n");
	PLAYED(&o, "< DRAIN in=90000ms$\n> OK locks=2 in_ms=90000\n=\n", "drain", "--in", "90s");
	ck_assert_str_eq(o.out, "the daemon grants nothing new; it stops when nobody holds anything, or in 1m30s (2 locks are held)\n");
	PLAYED(&o, "< DRAIN in=0ms$\n> OK locks=2 in_ms=0\n=\n", "drain", "-I0", "--json");
	ck_assert_str_eq(o.out, "{\"locks\":2,\"in_ms\":0}\n");
	PLAYED(&o, "< DRAIN$\n> ERR DENIED not you\n=\n", "drain");
	ck_assert_int_eq(o.code, EX_NOPERM);
}

TEST(drain_waits_until_the_daemon_has_said_that_it_stops)
{
	struct outcome o;

	PLAYED(&o, "< SUBSCRIBE$\n> OK\n< DRAIN$\n> ! DRAIN in_ms=-1\n> OK locks=1 in_ms=-1\n> ! DRAIN in_ms=0\n", "drain", "--wait");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.err, "");
	PLAYED(&o, "< SUBSCRIBE$\n> OK\n< DRAIN$\n> ! DRAIN in_ms=-1\n> OK locks=1 in_ms=-1\n", "drain", "-w");
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(o.err, "the daemon has not said that it stops"));
}

TEST(an_option_of_two_commands_is_that_of_the_given_one)
{
	struct outcome o;

	refused(&o, (const char *const[]){"drain", "--wait", "5s", NULL});
	ck_assert_int_eq(o.code, EX_USAGE);
	ck_assert_ptr_nonnull(strstr(o.err, "'5s' is too much"));
	refused(&o, (const char *const[]){"ls", "--wait", "5s", NULL});
	ck_assert_ptr_nonnull(strstr(o.err, "--wait is no option of ls"));
	refused(&o, (const char *const[]){"drain", "--wait", "--in", "5", NULL});
	ck_assert_ptr_nonnull(strstr(o.err, "lacks a unit"));
}
