/* SPDX-License-Identifier: BSD-2-Clause */
/* client/cli/cli.c: what redlock says of a mistake, its exit codes, and what it does without a daemon. */
#include "client/cli/io/invocation.h"
#include "client/lib/address.h"
#include "tests/fixture/fake_daemon.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* No daemon listens. */
static void alone(struct outcome *o, const char *const *argv)
{
	struct fake_daemon f;

	fake_daemon_begin(&f, "");
	snprintf(f.addr, sizeof(f.addr), "%s/nobody", f.folder);
	redlock_run(&f, o, argv);
	fake_daemon_break(&f);
}

TEST(errors_have_the_exit_codes_of_sysexits)
{
	struct outcome o;

	PLAYED(&o, "< STATS all\n> ERR UNAVAILABLE no store\n=\n", "stats");
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	ck_assert_str_eq(o.err, "redlock: UNAVAILABLE no store\n");
	PLAYED(&o, "< SHOW x\n> ERR ARG what\n=\n", "show", "x");
	ck_assert_int_eq(o.code, EX_USAGE);
	PLAYED(&o, "< SHOW x\n> ERR LIMIT a name may have at most 0 bytes\n=\n", "show", "x");
	ck_assert_int_eq(o.code, EX_USAGE);
	PLAYED(&o, "< STATS all\n> ERR LIMIT clients=1 too many connections\n", "stats");
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	PLAYED(&o, "< STATS all\n> ERR LIMIT descriptors=9 no descriptor left for another connection\n", "stats");
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	PLAYED(&o, "< STATS all\n", "stats");
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	ck_assert_msg(fnmatch("redlock: redlockd at */sock closed the connection; on its host, systemctl status redlockd may say why\n", o.err, 0) == 0,
		      "%s", o.err);
	alone(&o, (const char *const[]){"ls", NULL});
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(o.err, "No such file or directory; is it running? See systemctl status redlockd on its host\n"));
	alone(&o, (const char *const[]){"watch", NULL});
	ck_assert_ptr_nonnull(strstr(o.err, "is it running? See systemctl status redlockd on its host\n"));
	alone(&o, (const char *const[]){"top", "--once", NULL});
	ck_assert_ptr_nonnull(strstr(o.err, "is it running? See systemctl status redlockd on its host\n"));
	alone(&o, (const char *const[]){"run", "x", "true", NULL});
	ck_assert_int_eq(o.code, EXIT_FAILED);
}

static const struct mistake_row {
	const char *argv[8];
	int code;
	const char *err;
} mistakes[] = {
	{{NULL}, 64, "redlock: no command given; redlock --help lists them\n"},
	{{"shwo", "x"}, 64, "redlock: no command 'shwo'; did you mean 'show'?\n"},
	{{"frobnicate"}, 64, "redlock: no command 'frobnicate'; redlock --help lists them\n"},
	{{"kill", "x7"}, 64, "redlock: 'x7' is no session: redlock clients shows their numbers\n"},
	{{"break"}, 64, "redlock: an argument is missing; the usage is: redlock break NAME\n"},
	{{"run", "x"}, 125, "redlock: an argument is missing; the usage is: redlock run NAME [[NAME...] --] CMD...\n"},
	{{"try"}, 125, "redlock: an argument is missing; the usage is: redlock try NAME [[NAME...] --] CMD...\n"},
	{{"run", "--any", "x", "true"}, 125, "redlock: --any needs two or more names; the usage is: redlock run NAME [[NAME...] --] CMD...\n"},
	{{"lead", "--any", "x", "true"}, 125, "redlock: --any is no option of lead\n"},
	{{"show"}, 64, "redlock: an argument is missing; the usage is: redlock show NAME\n"},
	{{"show", "a", "b"}, 64, "redlock: 'b' is too much: redlock show NAME\n"},
	{{"defer", "q", "two", "words"}, 64, "redlock: 'words' is too much: redlock defer QUEUE [TEXT]\n"},
	{{"retry", "q", "1", "2"}, 64, "redlock: '2' is too much: redlock retry QUEUE ID\n"},
	{{"stats", "a"}, 64, "redlock: 'a' is too much: redlock stats \n"},
	{{"run", "x", "--wait", "10", "true"}, 125, "redlock: --wait '10' lacks a unit; did you mean 10s?\n"},
	{{"run", "--ttl=0s", "x", "true"}, 125, "redlock: --ttl '0s' must be more than 0\n"},
	{{"run", "--shared", "--keep", "1s", "x", "true"}, 125, "redlock: --keep works with exclusive locks only, not with --shared\n"},
	{{"run", "--keep", "soon", "x", "true"}, 125, "redlock: --keep 'soon' is no duration: 500ms, 10s, 1.5s, 2m, 1h\n"},
	{{"run", "--wait", "99999h", "x", "true"}, 125, "redlock: --wait '99999h' is more than ten years\n"},
	{{"run", "--trace", "00-1-1-01", "x", "true"}, 125,
	 "redlock: --trace '00-1-1-01' is no traceparent of W3C Trace Context, as in 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"},
	{{"run", "-p", "10", "x", "true"}, 125, "redlock: --priority '10' is no priority: 0 to 9\n"},
	{{"lead", "--wait", "1s", "x", "true"}, 125, "redlock: --wait is no option of lead\n"},
	{{"run", "-E", "256", "x", "true"}, 125, "redlock: --conflict-exit-code '256' is no exit code: 0 to 255\n"},
	{{"run", "--wiat", "1s", "x", "true"}, 125, "redlock: no option '--wiat'; did you mean '--wait'?\n"},
	{{"run", "x", "--ttl"}, 125, "redlock: option '--ttl' needs a value\n"},
	{{"try", "--wait", "1s", "x", "true"}, 125, "redlock: --wait is no option of try\n"},
	{{"run", "--json", "x", "true"}, 125, "redlock: --json is no option of run\n"},
	{{"ls", "--ttl", "1s"}, 64, "redlock: --ttl is no option of ls\n"},
	{{"--addr", "nosuch:99999", "ping"}, 69, "redlock: cannot reach redlockd at nosuch:99999: a port is a number from 1 to 65535\n"},
	{{"--addr", "nosuch:redlock", "ping"}, 69, "redlock: cannot reach redlockd at nosuch:redlock: a port is a number from 1 to 65535\n"},
	{{"--addr", "::1:7420", "ls"}, 69, "redlock: cannot reach redlockd at ::1:7420: an IPv6 address must be in brackets: [::1]:7420\n"},
	{{"--addr", "[::1:7420", "ls"}, 69, "redlock: cannot reach redlockd at [::1:7420: a bracket is open: [::1]:7420\n"},
	{{"--addr", "[::1]7420", "ls"}, 69, "redlock: cannot reach redlockd at [::1]7420: behind the bracket is a port, or nothing: [::1]:7420\n"},
	{{"--addr", "[::1]:x", "ls"}, 69, "redlock: cannot reach redlockd at [::1]:x: a port is a number from 1 to 65535\n"},
	{{"--addr", "unix:", "ls"}, 69, "redlock: cannot reach redlockd at unix:: an address is host:port, or the path of a Unix socket, with a '/'\n"},
	{{"ls", "-x"}, 64, "redlock: no option '-x'; redlock --help lists them\n"},
	{{"run", "\xe2\x80\x94wait", "5s", "x", "true"}, 125,
	 "redlock: '\xe2\x80\x94wait' begins with U+2014, which is no hyphen; if it is meant, write -- before it\n"},
	{{"\xe2\x80\x93" "addr", "x", "ls"}, 64,
	 "redlock: '\xe2\x80\x93" "addr' begins with U+2013, which is no hyphen; if it is meant, write -- before it\n"},
	{{"--addr", "::1:7420", "show", "--", "\xe2\x80\x94x"}, 69,
	 "redlock: cannot reach redlockd at ::1:7420: an IPv6 address must be in brackets: [::1]:7420\n"},
};

LOOP_TEST(a_mistake_is_told_in_one_line, (int)(sizeof(mistakes) / sizeof(mistakes[0])))
{
	const struct mistake_row *m = &mistakes[_i];
	struct outcome o;

	alone(&o, m->argv);
	ck_assert_str_eq(o.err, m->err);
	ck_assert_int_eq(o.code, m->code);
	ck_assert_str_eq(o.out, "");
}

TEST(an_address_may_lack_its_host_or_its_port)
{
	static const char *const sound[] = {"[::1]:7420", "[::1]:", "[::1]", ":7420", ":", "host", "host:", "host:1", "/a/b:c", "socket", "unix:a:b:c"};

	for (unsigned i = 0; i < sizeof(sound) / sizeof(sound[0]); i++)
		ck_assert_msg(!address_flaw(sound[i]), "%s: %s", sound[i], address_flaw(sound[i]));
}

TEST(help_and_version_need_no_daemon)
{
	struct outcome o;
	size_t i;

	alone(&o, (const char *const[]){"--version", NULL});
	ck_assert_str_eq(o.out, "redlock " REDLOCKD_VERSION "\n");
	ck_assert_int_eq(o.code, 0);
	alone(&o, (const char *const[]){"--help", NULL});
	ck_assert_int_eq(o.code, 0);
	for (i = 0; i < CLI_COMMANDS; i++)
		ck_assert_ptr_nonnull(strstr(o.out, cli_commands[i].help));
	alone(&o, (const char *const[]){"run", "--help", NULL});
	ck_assert_int_eq(o.code, 0);
	ck_assert_ptr_nonnull(strstr(o.out, "--keep D"));
	ck_assert_ptr_null(strstr(o.out, "--json"));
}
