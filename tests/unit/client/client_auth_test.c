/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/open.c, recovery.c: the client library shows who it is, on each connection, and where it finds the secret. */
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTH "< AUTH ann \"a b\"$\n> OK user=ann\n"

static void forgets(void)
{
	unsetenv("REDLOCK_USER");
	unsetenv("REDLOCK_SECRET");
	unsetenv("REDLOCK_SECRET_FILE");
}

FIXTURE(.teardown = forgets)

TEST(the_secret_is_shown_again_before_a_session_is_resumed)
{
	struct scripted_session s;

	setenv("REDLOCK_USER", "ann", 1);
	setenv("REDLOCK_SECRET", "a b", 1);
	scripted_session_begin(&s, AUTH HELLO LOCK "< CHECK n$\n+\n" AUTH RESUME ROW "> OK session=7 n=1\n" CHECK QUIT);
	forgets(); /* the library keeps it */
	scripted_session_check(&s, 0);
	scripted_session_end(&s);
}

TEST(a_secret_that_the_daemon_does_not_accept_fails_the_opening)
{
	struct fake_daemon f;
	struct redlock *c;

	setenv("REDLOCK_USER", "ann", 1);
	setenv("REDLOCK_SECRET", "x", 1);
	fake_daemon_begin(&f, "< AUTH ann x$\n> ERR AUTH no user of that name has that secret\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), -EACCES);
	ck_assert_ptr_nonnull(strstr(redlock_errmsg(NULL), "no user of that name has that secret"));
	fake_daemon_end(&f);
}

TEST(a_refused_user_may_be_shown_again)
{
	struct fake_daemon f;
	struct redlock *c;

	fake_daemon_begin(&f, "< AUTH ann x$\n> ERR AUTH no\n< AUTH ann \"\\n\"$\n> OK user=ann\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	ck_assert_int_eq(redlock_auth(c, "ann", "x"), REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(c), "AUTH");
	ck_assert_int_eq(redlock_auth(c, "ann", "\n"), 0);
	redlock_close(c);
	fake_daemon_end(&f);
}

/* The text of the file, and what redlock_open comes to where the daemon accepts "s". */
static const struct {
	const char *text;
	int outcome;
} file[] = {{"s\n", 0}, {"s", 0}, {"s\r\n", 0}, {"s\nmore\n", 0}, {"", -EINVAL}, {"\n", -EINVAL}};

LOOP_TEST(the_secret_is_the_first_line_of_the_file, ARRAY_N(file))
{
	struct fake_daemon f;
	struct redlock *c = NULL;
	FILE *out;

	fake_daemon_begin(&f, file[_i].outcome ? "=\n" : "< AUTH ann s$\n> OK user=ann\n");
	out = fopen(fake_daemon_path(&f, "secret"), "w");
	ck_assert_ptr_nonnull(out);
	fputs(file[_i].text, out);
	fclose(out);
	setenv("REDLOCK_USER", "ann", 1);
	setenv("REDLOCK_SECRET_FILE", fake_daemon_path(&f, "secret"), 1);
	setenv("REDLOCK_SECRET", "another", 1);
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), file[_i].outcome);
	redlock_close(c);
	fake_daemon_end(&f);
}

TEST(a_user_without_a_secret_fails_the_opening)
{
	struct fake_daemon f;
	struct redlock *c;

	setenv("REDLOCK_USER", "ann", 1);
	fake_daemon_begin(&f, "=\n+\n=\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), -EINVAL);
	setenv("REDLOCK_SECRET_FILE", "/nonexistent", 1);
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), -ENOENT);
	ck_assert_ptr_nonnull(strstr(redlock_errmsg(NULL), "No such file"));
	fake_daemon_end(&f);
}
