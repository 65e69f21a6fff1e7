/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/failure.c and handshake.c: what the text of an error proves, and how much of it may be told. */
#include "daemon/redis/handshake.h"
#include "daemon/redis/failure.h"

#include <check.h>
#include <string.h>

/* The texts of several versions of the server, inside a script and outside. */
static const char *const refusals[] = {
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	"MISCONF Redis is configured to save RDB snapshots, but …",
	"NOSCRIPT No matching script. Please use EVAL.",
	"NOAUTH Authentication required.",
	"NOPERM this user has no permissions to run the 'evalsha' command",
	"CLUSTERDOWN Hash slot not served",
	"MOVED 3999 127.0.0.1:6381",
	"ASK 3999 127.0.0.1:6381",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"CROSSSLOT Keys in request don't hash to the same slot",
	"NOREPLICAS Not enough good replicas to write.",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"OOM command not allowed when used memory > 'maxmemory'. script: 29150ea058de2f613a1c5d75f818dad54f48b126, on "
	"@user_script:1.",
	"OOM",
	"-OOM command not allowed when used memory > 'maxmemory'.",
	"@user_script: 1: -READONLY You can't write against a read only replica.",
	"ERR Error running script (call to f_29150ea058de2f613a1c5d75f818dad54f48b126): @user_script:1: @user_script: 1: -OOM "
	"command …",
	"ERR Error running script (call to f_29150ea058de2f613a1c5d75f818dad54f48b126): @user_script:9: Script killed by user "
	"with SCRIPT KILL...",
	"ERR Script killed by user with SCRIPT KILL... script: 694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7, on @user_script:1.",
	"ERR max number of clients reached",
	"ERR The user executing the script can't run this command or subcommand script: 2915, on @user_script:1.",
	"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
	"ERR the fence key holds no number",
	"NOPERM ACL failure in script: User u has no permissions to run the 'set' command",
};

static const char *const unknowns[] = {
	"",
	"ERR",
	"-",
	"ERR unknown command `EVALSHA`",
	"ERR user_script:31: attempt to perform arithmetic on a nil value script: 443c, on @user_script:31.",
	"ERR user_script:31: attempt to call OOM",
	"ERR user_script:31",
	"ERR Error running script",
	"ERR Error running script OOM",
	"WRONGTYPE Operation against a key holding the wrong kind of value BUSY",
	"OOMPH",
	"BUSYGROUP Consumer Group name already exists",
	"busy",
	"EXECABORT Transaction discarded because of previous errors.",
	"UNKILLABLE Sorry the script already executed write commands against the dataset.",
	"ERR OOMPH: max number of clients",
	"PROXY the max number of clients",
};

TEST(an_error_has_a_defect_by_its_beginning)
{
	static const struct {
		const char *text;
		enum defect defect;
	} row[] = {
		{"OOM command not allowed when used memory > 'maxmemory'.", DEFECT_MEMORY},
		{"ERR Error running script (call to f_29150ea058de2f613a1c5d75f818dad54f48b126): @user_script:1: @user_script: 1: -OOM x", DEFECT_MEMORY},
		{"-NOREPLICAS Not enough good replicas to write.", DEFECT_REPLICAS},
		{"@user_script: 31: -MISCONF Redis is configured to save RDB snapshots", DEFECT_DISK},
		{"READONLY You can't write against a read only replica.", DEFECT_REPLICA},
		{"BUSY Redis is busy running a script.", DEFECT_SCRIPT},
		{"WRONGPASS invalid username-password pair or user is disabled.", DEFECT_PASSWORD},
		{"NOAUTH Authentication required.", DEFECT_AUTH},
		{"ERR AUTH <password> called without any password configured for the default user. Are you sure", DEFECT_NO_PASSWORD},
		{"ERR DB index is out of range", DEFECT_DATABASE},
		{"ERR invalid DB index", DEFECT_DATABASE},
		{"ERR max number of clients reached", DEFECT_CLIENTS},
		{"ERR unknown command 'EVALSHA', with args beginning with: 'OOM'", DEFECT_COMMAND},
		{"ERR Unknown Redis command called from script script: 12", DEFECT_COMMAND},
		{"MOVED 3999 127.0.0.1:6381", DEFECT_CLUSTER},
		{"DENIED Redis is running in protected mode because protected mode is enabled", DEFECT_PROTECTED},
		{"ERR a text about OOM, a sentinel and WRONGPASS", DEFECT_OTHER},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", DEFECT_KEY},
		{"ERR the fence key holds no number that a fence may follow", DEFECT_KEY},
		{"BUSYGROUP Consumer Group name already exists", DEFECT_OTHER},
		{"", DEFECT_OTHER},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		ck_assert_msg(failure_defect(span_of(row[i].text)) == row[i].defect, "%s", row[i].text);
}

LOOP_TEST(a_listed_error_is_a_refusal_however_it_is_wrapped, sizeof(refusals) / sizeof(*refusals))
{
	ck_assert_msg(failure_class(span_of(refusals[_i])) == ANSWER_REFUSED, "%s", refusals[_i]);
}

LOOP_TEST(any_other_error_is_unknown, sizeof(unknowns) / sizeof(*unknowns))
{
	ck_assert_msg(failure_class(span_of(unknowns[_i])) == ANSWER_UNKNOWN, "%s", unknowns[_i]);
}

TEST(an_error_is_told_without_the_place_in_our_script)
{
	static const char *const row[][2] = {
		{"WRONGTYPE no: redlockd:lock:!dead script: 0f3c, on @user_script:14.", "WRONGTYPE no: redlockd:lock:!dead"},
		{"WRONGTYPE no: j: script: x script: 0f3c, on @user_script:14.", "WRONGTYPE no: j: script: x"},
		{"ERR Unknown Redis command called from script script: 0f3c, on @user_script:8.: TIME",
		 "ERR Unknown Redis command called from script script: 0f3c, on @user_script:8.: TIME"},
		{"OOM no.", "OOM no."},
		{"", ""},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		ck_assert_msg(span_equal(failure_text(span_of(row[i][0])), span_of(row[i][1])), "%s", row[i][0]);
}

TEST(a_text_that_repeats_the_password_is_withheld)
{
	char reason[256];

	handshake_reason(SPAN("ERR unknown command `AUTH`, with args beginning with: `hunter2hunter2`"), "hunter2hunter2", reason,
			 sizeof(reason));
	ck_assert_ptr_null(strstr(reason, "hunter"));
	ck_assert_ptr_nonnull(strstr(reason, "ERR "));
	handshake_reason(SPAN("ERR with args beginning with: `hunter2hu...`"), "hunter2hunter2", reason, sizeof(reason));
	ck_assert_ptr_null(strstr(reason, "hunter"));
	handshake_reason(SPAN("hunter2 hunter2"), "hunter2", reason, sizeof(reason));
	ck_assert_ptr_null(strstr(reason, "hunter"));
	handshake_reason(SPAN("WRONGPASS invalid username-password pair"), "hunter2", reason, sizeof(reason));
	ck_assert_str_eq(reason, "WRONGPASS invalid username-password pair");
}

TEST(a_reason_is_one_line_of_limited_length)
{
	char reason[16];

	handshake_reason(SPAN("a\r\nb\0\x1b[31mcccccccccccccccccccccccccc"), NULL, reason, sizeof(reason));
	ck_assert_str_eq(reason, "a??b??[31mccccc");
	handshake_reason(SPAN(""), "x", reason, sizeof(reason));
	ck_assert_str_eq(reason, "");
}
