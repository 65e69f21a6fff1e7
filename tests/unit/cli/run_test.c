/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/cli/run/run.c: redlock run and try against a scripted daemon: what the command finds, and what redlock exits with. A lock that is lost:
 * run_lock_lost_test.c.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/run/wait_display.h"
#include "tests/fixture/run_transcript.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FIXTURE(.seconds = 20)

TEST(the_command_finds_its_name_and_fence_and_gives_its_code)
{
	struct outcome o;

	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "--", "sh", "-c", "echo $REDLOCK_NAME $REDLOCK_FENCE; exit 7");
	ck_assert_int_eq(o.code, 7);
	ck_assert_str_eq(o.out, "n 17\n");
	ck_assert_str_eq(o.err, "");
}

#define ONE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define TWO "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
#define LOCK_TRACED(trace) HELLO "< LOCK n wait=forever note=true" trace "$\n> OK name=n fence=17 valid_ms=90000 ttl_ms=90000 count=1\n"

TEST(the_span_that_asks_is_told_only_if_the_option_has_one)
{
	struct outcome o;

	setenv("TRACEPARENT", ONE, 1);
	PLAYED(&o, LOCK_TRACED(" trace=" TWO) CHECK UNLOCK, "run", "--trace", TWO, "n", "true");
	ck_assert_int_eq(o.code, 0);
	PLAYED(&o, LOCK_TRACED("") CHECK UNLOCK, "run", "--trace", "", "n", "true");
	ck_assert_int_eq(o.code, 0);
	PLAYED(&o, LOCK_TRACED("") CHECK UNLOCK, "run", "n", "true"); /* which a daemon of 0.1.0 would refuse */
	ck_assert_int_eq(o.code, 0);
}

TEST(a_command_that_died_of_a_signal_gives_128_and_the_signal)
{
	struct outcome o;

	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "sh", "-c", "kill -USR1 $$");
	ck_assert_int_eq(o.code, 128 + SIGUSR1);
}

TEST(an_ignored_SIGCHLD_and_a_closed_stderr_do_no_harm)
{
	struct outcome o;

	setenv("FAKE_IGNORES_CHLD", "1", 1);
	setenv("FAKE_CLOSES_STDERR", "1", 1);
	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "sh", "-c", "exit 7");
	ck_assert_int_eq(o.code, 7);
	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "/nonexistent/command");
	ck_assert_int_eq(o.code, EXIT_NOT_FOUND);
	PLAYED(&o, HELLO "< LOCK n\n> BUSY name=n\n=\n", "try", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
}

TEST(an_error_message_that_nobody_reads_changes_no_exit_code)
{
	struct outcome o;

	setenv("FAKE_BREAKS_STDERR", "1", 1);
	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "/nonexistent/command");
	ck_assert_int_eq(o.code, EXIT_NOT_FOUND);
	PLAYED(&o, HELLO "< LOCK n\n> BUSY name=n\n=\n", "try", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
}

TEST(the_command_has_neither_the_socket_nor_blocked_signals)
{
	struct outcome o;

	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "sh", "-c",
	       "ls -l /proc/self/fd | grep -c socket; grep SigBlk /proc/self/status");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "0\nSigBlk:\t0000000000000000\n");
}

TEST(options_reach_the_daemon)
{
	struct outcome o;

	PLAYED(&o,
	       HELLO "< LOCK n wait=1500ms ttl=3000ms note=\"my note\"\n> OK name=n fence=17 valid_ms=10000 ttl_ms=10000 "
		     "count=1\n" CHECK "< UNLOCK n keep=5000ms\n> OK name=n count=0\n=\n",
	       "run", "--wait", "1.5s", "n", "--ttl=3s", "-k", "5s", "--note", "my note", "--", "true");
	ck_assert_int_eq(o.code, 0);
	PLAYED(&o,
	       HELLO "< LOCK n wait=forever note=\"sh -c 'exit 3' --wait\"\n> OK name=n fence=17 valid_ms=10000 ttl_ms=10000 "
		     "count=1\n" CHECK UNLOCK,
	       "run", "--wait=forever", "n", "sh", "-c", "'exit 3'", "--wait");
	ck_assert_int_eq(o.code, 127);
	PLAYED(&o,
	       HELLO "< LOCK n wait=forever ttl=3000ms mode=shared note=\n> OK name=n fence=17 valid_ms=10000 ttl_ms=10000 "
		     "count=1 mode=shared\n" CHECK UNLOCK,
	       "run", "--shared", "-t", "3s", "n", "true");
	ck_assert_int_eq(o.code, 0);
}

TEST(after_two_dashes_nothing_is_an_option)
{
	struct outcome o;

	PLAYED(&o, LOCK CHECK UNLOCK, "run", "--", "n", "--version");
	ck_assert_int_eq(o.code, EXIT_NOT_FOUND);
	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "--", "--version");
	ck_assert_int_eq(o.code, EXIT_NOT_FOUND);
}

TEST(a_long_command_line_is_a_note_of_256_bytes)
{
	static char word[400], script[800];
	struct outcome o;

	memset(word, 'x', 399);
	snprintf(script, sizeof(script), HELLO "< LOCK n wait=forever note=\"true %.251s\"\n> BUSY name=n\n=\n", word);
	PLAYED(&o, script, "run", "n", "true", word);
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
}

TEST(a_lock_that_is_not_acquired_gives_124_or_the_code_of_E)
{
	struct outcome o;

	PLAYED(&o, HELLO "< LOCK n note=true\n> BUSY name=n\n=\n", "try", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
	ck_assert_str_eq(o.err, "redlock: n is held by somebody else\n");
	PLAYED(&o, HELLO "< LOCK n note=true\n> BUSY name=n holder=\"w pid=1\" held_ms=250000\n=\n", "try", "-E9", "n", "true");
	ck_assert_int_eq(o.code, 9);
	ck_assert_str_eq(o.err, "redlock: n is held by w pid=1 for 4m10s\n");
	PLAYED(&o,
	       HELLO "< LOCK n wait=10ms\n> TIMEOUT name=n waited_ms=10\n< SHOW n\n> * role=holder holder=\"w\\n\" held_ms=10\n> "
		     "OK n=1\n=\n",
	       "run", "-E", "0", "--wait", "10ms", "n", "true");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.err, "redlock: n is held by w\\x0a for 10ms\n");
	PLAYED(&o, HELLO "< LOCK n wait=10ms\n> TIMEOUT name=n waited_ms=10\n< SHOW n\n> * role=kept pos=0 ttl_ms=4000\n> OK n=1\n=\n", "run",
	       "-w10ms", "n", "true");
	ck_assert_str_eq(o.err, "redlock: n is held by nobody, but kept for 4s more\n");
	PLAYED(&o, HELLO "< LOCK n note=true\n> BUSY name=n kept_by=@db3 kept_ms=5000 waiters=0 retry_ms=15000\n=\n", "try", "n", "true");
	ck_assert_str_eq(o.err, "redlock: n is kept for 15s more since it ran 5s ago on @db3\n");
	PLAYED(&o, HELLO "< LOCK n note=true\n> BUSY name=n holder=w\n=\n", "try", "-q", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
	ck_assert_str_eq(o.err, "");
	PLAYED(&o, HELLO "< LOCK n wait=10ms\n> TIMEOUT name=n waited_ms=10\n< SHOW n\n> OK n=0\n=\n", "run", "-w10ms", "n",
	       "true");
	ck_assert_str_eq(o.err, "redlock: n was not free within 10ms\n");
}

TEST(a_command_longer_than_the_lock_can_be_kept_is_not_begun)
{
	struct outcome o;

	PLAYED(&o, "< HELLO 1\n> OK proto=1 session=7 max_lease_ms=30000\n=\n", "run", "--keep", "10m", "n", "touch", "/nonexistent/x");
	ck_assert_int_eq(o.code, EXIT_FAILED);
	ck_assert_str_eq(o.err, "redlock: --keep 10m is longer than the daemon's max_keep of 30s\n");
	PLAYED(&o, "< HELLO 1\n> OK proto=1 session=7 max_lease_ms=30000\n=\n", "try", "--keep", "30001ms", "n", "true");
	ck_assert_str_eq(o.err, "redlock: --keep 30001ms is longer than the daemon's max_keep of 30s\n");
	PLAYED(&o,
	       "< HELLO 1\n> OK proto=1 session=7 max_lease_ms=30000\n< LOCK n\n> OK name=n fence=17 valid_ms=10000 ttl_ms=10000 "
	       "count=1\n" CHECK "< UNLOCK n keep=30000ms\n> OK name=n count=0\n=\n",
	       "run", "--keep", "30s", "n", "true");
	ck_assert_int_eq(o.code, 0);
}

#define REFUSES_KEEP LOCK CHECK "< UNLOCK n keep=40000ms\n> ERR LIMIT keep may be at most 30000ms (max_keep)\n=\n"

/* The daemon gives a session less than the lease that redlock run asks for, or nothing. */
TEST(redlock_asks_for_as_much_grace_as_the_daemon_gives)
{
	static const char refused[] = "< HELLO 1 name=\"redlock run true/me\" grace=10000ms$\n> ERR LIMIT grace may be at most 4000ms (max_grace)\n"
				      "< HELLO 1 name=\"redlock run true/me\"$\n> OK proto=1 session=7 max_lease_ms=30000 ";
	static const char busy[] = "< LOCK n\n> BUSY name=n\n=\n";
	char script[1024];
	struct outcome o;

	setenv("USER", "me", 1);
	snprintf(script, sizeof(script), "%smax_grace_ms=4000\n< HELLO 1 name=\"redlock run true/me\" grace=4000ms$\n> OK proto=1 session=7\n%s", refused,
		 busy);
	PLAYED(&o, script, "try", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
	snprintf(script, sizeof(script), "%smax_grace_ms=0\n%s", refused, busy);
	PLAYED(&o, script, "try", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
}

TEST(a_keep_that_the_daemon_refuses_is_no_success)
{
	struct outcome o;

	PLAYED(&o, REFUSES_KEEP, "run", "--keep", "40s", "n", "true");
	ck_assert_int_eq(o.code, EXIT_FAILED);
	ck_assert_str_eq(o.err, "redlock: unlocking n: LIMIT keep may be at most 30000ms (max_keep)\n");
	PLAYED(&o, REFUSES_KEEP, "run", "--keep", "40s", "n", "sh", "-c", "exit 7");
	ck_assert_int_eq(o.code, 7);
}

static void tells_of_stores(const char *rows, const char *expected)
{
	char script[600], out[QUORUM_SHORTAGE_BYTES] = "?";
	struct fake_daemon f;
	struct redlock *c;

	snprintf(script, sizeof(script), "< LIST nodes$\n%s> OK n=3 more=0\n=\n", rows);
	fake_daemon_begin(&f, script);
	ck_assert_int_eq(redlock_open(f.addr, 1000, &c), 0);
	ck_assert_int_eq(quorum_shortage_ask(c, out), 0);
	ck_assert_str_eq(out, expected);
	redlock_close(c);
	fake_daemon_end(&f);
}

TEST(a_shortage_of_stores_is_told_with_its_reason)
{
	tells_of_stores("> * node=a state=joined\n> * node=b state=joined\n> * node=c state=down\n", "");
	tells_of_stores("> * node=a state=joined\n> * node=b state=slow\n> * node=c state=down reason=x\n",
			"too few Redis servers answer: 1 of 3, 2 are needed");
	tells_of_stores("> * node=a state=quarantine left_ms=28000\n> * node=b state=quarantine left_ms=9000\n> * node=c state=joined\n",
			"too few Redis servers vote: 1 of 3, 2 are needed; 2 may have forgotten locks and wait for up to 28s");
	tells_of_stores("> * node=memory state=quarantine left_ms=28000\n",
			"too few stores vote: 0 of 1, 1 are needed; 1 may have forgotten locks and wait for up to 28s");
}

TEST(errors_of_redlock_itself_give_125)
{
	struct outcome o;

	PLAYED(&o, HELLO "< LOCK n\n> ERR QUORUM 1 of 3 stores answered\n=\n", "try", "n", "true");
	ck_assert_int_eq(o.code, EXIT_FAILED);
	ck_assert_str_eq(o.err, "redlock: QUORUM 1 of 3 stores answered\n");
	PLAYED(&o, LOCK "< CHECK n\n> ERR LOST gone\n=\n", "run", "n", "touch", "/nonexistent/x");
	ck_assert_int_eq(o.code, EXIT_FAILED);
	PLAYED(&o, HELLO "< LOCK n\n", "run", "n", "true");
	ck_assert_int_eq(o.code, EXIT_FAILED);
	ck_assert_msg(fnmatch("redlock: redlockd at */sock closed the connection; on its host, systemctl status redlockd may say why\n", o.err, 0) == 0,
		      "%s", o.err);
}

TEST(a_command_that_cannot_be_executed_frees_the_lock)
{
	struct outcome o;

	PLAYED(&o, LOCK CHECK UNLOCK, "run", "--keep", "1m", "n", "/nonexistent/command");
	ck_assert_int_eq(o.code, EXIT_NOT_FOUND);
	ck_assert_str_eq(o.err, "redlock: cannot execute /nonexistent/command: No such file or directory\n");
	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "/dev/null");
	ck_assert_int_eq(o.code, EXIT_CANNOT_EXEC);
}

TEST(a_loss_after_the_commands_end_changes_nothing_unless_it_is_final)
{
	struct outcome o;

	PLAYED(&o, LOCK CHECK "< UNLOCK n\n> ! LOST name=n fence=17 reason=quorum\n> ERR LOST gone\n=\n", "run", "n", "sh", "-c",
	       "exit 3");
	ck_assert_int_eq(o.code, 3);
	ck_assert_str_eq(o.err, "");
	PLAYED(&o, LOCK CHECK "< UNLOCK n\n> ! LOST name=n fence=17 reason=evicted\n> ERR LOST gone\n=\n", "run", "n", "sh", "-c",
	       "exit 3");
	ck_assert_int_eq(o.code, EXIT_LOST);
	PLAYED(&o, LOCK CHECK "< UNLOCK n\n> ERR NOTHELD\n=\n", "run", "n", "sh", "-c", "exit 3");
	ck_assert_int_eq(o.code, EXIT_LOST);
	ck_assert_str_eq(o.err, "redlock: n was lost while the command ran\n");
	PLAYED(&o, LOCK CHECK "< UNLOCK n\n> ERR LIMIT keep: at most 30s\n=\n", "run", "--keep", "1h", "n", "sh", "-c", "exit 3");
	ck_assert_int_eq(o.code, 3);
	ck_assert_str_eq(o.err, "redlock: unlocking n: LIMIT keep: at most 30s\n");
}
