/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/script.c: what a probe tells of a server. */
#include "daemon/redis/script.h"

#include "tests/fixture/script_reply.h"

#include <errno.h>
#include <stdio.h>

#define PROBE_HEAD "*17\r\n:1761234567890123\r\n$3\r\nj|m\r\n"
#define PROBE_TAIL                                                                                                               \
	"$2\r\nru\r\n$2\r\nre\r\n$6\r\n7.0.15\r\n$6\r\nmaster\r\n$9\r\n104857600\r\n$10\r\nnoeviction\r\n$1\r\n7\r\n$1\r\n0\r\n"

#define PROBE_NAMED "$2\r\nr1\r\n"
#define PROBE_WELL  "$0\r\n\r\n" PROBE_NAMED /* it refuses nothing */
#define PROBE_REST  "$4\r\n0000\r\n$1\r\n0\r\n$1\r\n1\r\n$2\r\n-1\r\n"
#define PROBE_SAVES "$1\r\n1\r\n$2\r\n-1\r\n" PROBE_WELL
#define PROBE_OWN   "$4\r\n0000\r\n$1\r\n0\r\n" PROBE_SAVES

FIXTURE(.setup = script_reply_setup, .teardown = script_reply_teardown)

TEST(a_probe_tells_what_the_server_said)
{
	add(CALL_PROBE, 9);
	ck_assert_int_eq(answer_text(PROBE_HEAD "$4\r\n4711\r\n" PROBE_TAIL PROBE_OWN), 0);
	check_answer(0, 9, ANSWER_EXECUTED, 'P');
	ck_assert_int_eq(told[0].fence, 4711);
	ck_assert_int_eq(told[0].server_us, 1761234567890123);
	ck_assert(span_equal(told_probe.marker, SPAN("j|m")));
	ck_assert(span_equal(told_probe.run_id, SPAN("ru")));
	ck_assert(span_equal(told_probe.replid, SPAN("re")));
	ck_assert(span_equal(told_probe.version, SPAN("7.0.15")));
	ck_assert(span_equal(told_probe.role, SPAN("master")));
	ck_assert(span_equal(told_probe.policy, SPAN("noeviction")));
	ck_assert(span_equal(told_probe.called, SPAN("r1")));
	ck_assert_int_eq(told_probe.maxmemory, 104857600);
	ck_assert_int_eq(told_probe.evicted, 7);
	ck_assert(!told_probe.loading && !told_probe.defect && told_probe.own_data);
}

LOOP_TEST(a_probe_sees_whose_data_it_is, 5)
{
	static const struct {
		const char *told;
		bool own;
	} row[] = {
		{"$4\r\n0000\r\n$1\r\n0\r\n", true},    {"$4\r\n00a0\r\n$1\r\n0\r\n", false}, {"$4\r\n0000\r\n$2\r\n17\r\n", false},
		{"$0\r\n\r\n$1\r\n0\r\n", false}, {"$4\r\n0000\r\n$0\r\n\r\n", false},
	};
	char text[512];

	add(CALL_PROBE, 9);
	snprintf(text, sizeof(text), PROBE_HEAD "$1\r\n0\r\n" PROBE_TAIL "%s" PROBE_SAVES, row[_i].told);
	ck_assert_int_eq(answer_text(text), 0);
	ck_assert(told_probe.own_data == row[_i].own);
}

TEST(a_probe_of_a_server_that_may_not_tell_is_a_probe)
{
	add(CALL_PROBE, 9);
	ck_assert_int_eq(
		answer_text("*17\r\n:5\r\n$0\r\n\r\n$1\r\n0\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"
			    "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"),
		0);
	check_answer(0, 9, ANSWER_EXECUTED, 'P');
	ck_assert_uint_eq(told_probe.run_id.n, 0);
	ck_assert_int_eq(told_probe.maxmemory, 0);
	ck_assert(!told_probe.loading && !told_probe.defect && !told_probe.own_data);
}

LOOP_TEST(a_probe_tells_what_the_server_refuses, 9)
{
	static const struct {
		const char *refusal;
		enum defect defect;
		bool lesser;
	} row[] = {
		{"", DEFECT_NONE, false},
		{"SET OOM command not allowed when used memory > 'maxmemory'.", DEFECT_MEMORY, false},
		{"SET -NOREPLICAS Not enough good replicas to write.", DEFECT_REPLICAS, false},
		{"SET MISCONF Redis is configured to save RDB snapshots", DEFECT_DISK, false},
		{"DEL NOPERM this user has no permissions to run the 'del' command", DEFECT_PERMISSION, false},
		{"-PUBLISH ERR Unknown Redis command called from script script: 12", DEFECT_COMMAND, true},
		{"SET a text of its own", DEFECT_OTHER, false},
		{"SET", DEFECT_OTHER, false},
		{"-", DEFECT_OTHER, true},
	};
	char text[700];

	add(CALL_PROBE, 9);
	snprintf(text, sizeof(text), PROBE_HEAD "$1\r\n0\r\n" PROBE_TAIL PROBE_REST "$%zu\r\n%s\r\n" PROBE_NAMED, strlen(row[_i].refusal), row[_i].refusal);
	ck_assert_int_eq(answer_text(text), 0);
	ck_assert_int_eq(told_probe.defect, row[_i].defect);
	ck_assert(told_probe.lesser == row[_i].lesser);
	ck_assert(span_equal(told_probe.refusal, span_of(row[_i].refusal + row[_i].lesser)));
}

LOOP_TEST(a_probe_sees_that_nothing_was_saved, 4)
{
	static const struct {
		const char *told;
		bool unsaved;
	} row[] = {
		{"$1\r\n0\r\n$2\r\n-1\r\n", true}, {"$1\r\n1\r\n$2\r\n-1\r\n", false},
		{"$1\r\n0\r\n$1\r\n0\r\n", false}, {"$0\r\n\r\n$0\r\n\r\n", false},
	};
	char text[512];

	add(CALL_PROBE, 9);
	snprintf(text, sizeof(text), PROBE_HEAD "$1\r\n0\r\n" PROBE_TAIL "$4\r\n0000\r\n$1\r\n0\r\n%s" PROBE_WELL, row[_i].told);
	ck_assert_int_eq(answer_text(text), 0);
	ck_assert(told_probe.unsaved == row[_i].unsaved);
}

TEST(a_fence_key_that_holds_no_number_is_no_garbage_but_no_answer_either)
{
	add(CALL_PROBE, 9);
	ck_assert_int_eq(answer_text(PROBE_HEAD "$3\r\n1e9\r\n" PROBE_TAIL PROBE_OWN), 0);
	check_answer(0, 9, ANSWER_UNKNOWN, 0);
	ck_assert_ptr_null(told[0].probe);
}

TEST(a_probe_of_another_shape_is_garbage)
{
	add(CALL_PROBE, 9);
	ck_assert_int_eq(answer_text("*2\r\n:1\r\n$3\r\nj|m\r\n"), -EPROTO);
	ck_assert_int_eq(answer_text("*17\r\n:5\r\n:1\r\n$1\r\n0\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"
				     "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"),
			 -EPROTO);
	ck_assert_int_eq(
		answer_text("*17\r\n:5\r\n$0\r\n\r\n*1\r\n$1\r\n0\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"
			    "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"),
		-EPROTO);
	ck_assert_uint_eq(tolds, 0);
}
