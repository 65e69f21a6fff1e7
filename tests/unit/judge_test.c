/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/judge.c: which stores must not be used, and how that is told; what proves that a clock jumped. */
#include "daemon/core/judge.h"
#include "tests/unit/stage.h"

#include <check.h>

#define GRANT "OK name=a fence=* valid_ms=* ttl_ms=10000 count=1"

static void state_becomes(const char *state)
{
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), state);
	/* Its votes do not count, and the others are enough. */
	says(1, "LOCK a");
	hears(1, GRANT);
	ck_assert(!key_is_there(0, "a"));
	says(1, "UNLOCK a");
	ignores(1);
}

START_TEST(a_replica_is_refused_and_welcome_once_it_is_a_master)
{
	stage_begin(3);
	stage.node[0].probe.role = SPAN("slave");
	state_becomes("refused: it is a slave: only a master may hold locks");
	stage.node[0].probe.role = SPAN("master");
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}
END_TEST

START_TEST(a_store_that_loads_its_data_is_refused)
{
	stage_begin(3);
	stage.node[0].probe.loading = true;
	state_becomes("refused: it is loading its data");
}
END_TEST

START_TEST(a_store_that_may_evict_locks_is_refused_and_told_what_to_set)
{
	stage_begin(3);
	stage.node[0].probe.maxmemory = 1000000;
	stage.node[0].probe.policy = SPAN("volatile-lru");
	state_becomes("refused: maxmemory-policy is volatile-lru, which evicts locks: set noeviction");
}
END_TEST

START_TEST(a_policy_does_not_matter_without_a_limit_of_memory)
{
	stage_begin(1);
	stage.node[0].probe.policy = SPAN("allkeys-lru");
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}
END_TEST

START_TEST(the_same_server_twice_counts_once)
{
	stage_open(3);
	stage.node[1].probe.run_id = span_of(stage.node[0].run_id);
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 1), "refused: it is the same server as a");
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
	falls(2);
	says(1, "LOCK a");
	hears(1, "ERR QUORUM *");
	stage.node[1].probe.run_id = SPAN("");
	stage.node[1].probe.run_id.p = NULL;
}
END_TEST

START_TEST(a_store_that_cannot_save_is_refused_once_it_has_refused_a_write)
{
	stage_begin(3);
	stage.node[0].probe.bgsave_failed = true;
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	refuses(0, "MISCONF Redis is configured to save RDB snapshots");
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	feels(0, MOOD_WELL);
	state_becomes("refused: it refuses writes (MISCONF) since it cannot save to disk");
	stage.node[0].probe.bgsave_failed = false;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	/* What it refused before it could save is forgotten. */
	stage.node[0].probe.bgsave_failed = true;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}
END_TEST

START_TEST(another_configuration_of_the_same_generation_is_refused_and_never_overwritten)
{
	struct span marker;

	stage_begin(3);
	stage.conf.set = "others";
	daemon_starts(1);
	passes(100 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 0);
	ck_assert_ptr_nonnull(strstr(store_state(1, 0), "refused: it belongs to another configuration"));
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
	marker = memory_marker(stage.node[0].memory);
	ck_assert_int_eq(marker.p[0], 'j');
}
END_TEST

START_TEST(every_setting_that_must_be_the_same_is_in_the_configuration)
{
	stage_begin(3);
	switch (_i) {
	case 0:
		stage.conf.max_lease_us = 20 * SEC;
		break;
	case 1:
		stage.conf.max_delay_us = SEC;
		break;
	case 2:
		stage.conf.set = "sets";
		break;
	}
	daemon_starts(1);
	ck_assert_ptr_nonnull(strstr(store_state(1, 0), "refused: it belongs to another configuration"));
}
END_TEST

START_TEST(a_higher_generation_takes_over_and_the_lower_one_is_refused)
{
	stage_begin(3);
	passes(2 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	stage.conf.generation = 2;
	stage.conf.set = "new";
	daemon_starts(1);
	ck_assert_str_eq(store_state(1, 0), "quarantine: it was restarted, replaced or taken over");
	passes(11 * SEC);
	hears(1, "! RISK *");
	hears(1, "! LOST name=a fence=* reason=quorum");
	ck_assert_str_eq(store_state(0, 0), "refused: it belongs to generation 2, this daemon is configured for 1");
	session_opens(2, 1);
	says(2, "LOCK a wait=1m");
	passes(18 * SEC);
	hears_nothing(2);
	passes(3 * SEC);
	hears(2, GRANT);
}
END_TEST

START_TEST(nonsense_in_the_marker_is_no_configuration_and_no_join)
{
	static const char *const marker[] = {"j", "x", "||||", "j|1.0||run|", "jj|a|b|c|d"};

	stage_open(1);
	marker_is_set(0, marker[_i]);
	stage.conf.trust_first_start = false;
	daemon_starts(0);
	passes(5 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
}
END_TEST

/* --- clocks --- */

static int64_t looked(struct member_clock *clock, int64_t server, int64_t sent, int64_t received)
{
	return member_clock_jump(clock, server, (struct instant){sent}, (struct instant){received});
}

START_TEST(the_first_look_at_a_clock_proves_nothing)
{
	struct member_clock clock = {0};

	ck_assert_int_eq(looked(&clock, 5000 * SEC, 0, 100), 0);
	ck_assert(clock.known);
}
END_TEST

START_TEST(drift_and_50_ms_are_no_jump)
{
	struct member_clock clock = {0};

	looked(&clock, 1000 * SEC, 0, 0);
	/* After 100 s: 1 s by drift and 50 ms more. */
	ck_assert_int_eq(looked(&clock, 1101 * SEC + 50 * MSEC, 100 * SEC, 100 * SEC), 0);
	clock = (struct member_clock){0};
	looked(&clock, 1000 * SEC, 0, 0);
	ck_assert_int_eq(looked(&clock, 1101 * SEC + 51 * MSEC, 100 * SEC, 100 * SEC), SEC + 51 * MSEC);
}
END_TEST

START_TEST(a_slow_answer_widens_the_bounds_instead_of_being_a_jump)
{
	struct member_clock clock = {0};

	looked(&clock, 1000 * SEC, 0, 0);
	/* Sent at 1 s, carried out at 4 s, read at 5 s. */
	ck_assert_int_eq(looked(&clock, 1004 * SEC, 1 * SEC, 5 * SEC), 0);
	ck_assert_int_eq(looked(&clock, 1006 * SEC, 6 * SEC, 6 * SEC), 0);
	ck_assert_int_gt(looked(&clock, 1009 * SEC, 7 * SEC, 7 * SEC), SEC);
}
END_TEST

START_TEST(a_step_back_is_the_new_truth_and_coming_back_from_it_a_jump)
{
	struct member_clock clock = {0};

	looked(&clock, 1000 * SEC, 0, 0);
	ck_assert_int_eq(looked(&clock, 961 * SEC, SEC, SEC), 0);
	ck_assert_int_ge(looked(&clock, 1002 * SEC, 2 * SEC, 2 * SEC), 40 * SEC);
}
END_TEST

Suite *judge_suite(void)
{
	Suite *suite = suite_create("judge");
	TCase *fitness = tcase_create("fitness"), *clocks = tcase_create("clocks");

	tcase_add_checked_fixture(fitness, NULL, stage_close);
	tcase_add_test(fitness, a_replica_is_refused_and_welcome_once_it_is_a_master);
	tcase_add_test(fitness, a_store_that_loads_its_data_is_refused);
	tcase_add_test(fitness, a_store_that_may_evict_locks_is_refused_and_told_what_to_set);
	tcase_add_test(fitness, a_policy_does_not_matter_without_a_limit_of_memory);
	tcase_add_test(fitness, the_same_server_twice_counts_once);
	tcase_add_test(fitness, a_store_that_cannot_save_is_refused_once_it_has_refused_a_write);
	tcase_add_test(fitness, another_configuration_of_the_same_generation_is_refused_and_never_overwritten);
	tcase_add_loop_test(fitness, every_setting_that_must_be_the_same_is_in_the_configuration, 0, 3);
	tcase_add_test(fitness, a_higher_generation_takes_over_and_the_lower_one_is_refused);
	tcase_add_loop_test(fitness, nonsense_in_the_marker_is_no_configuration_and_no_join, 0, 5);
	suite_add_tcase(suite, fitness);
	tcase_add_test(clocks, the_first_look_at_a_clock_proves_nothing);
	tcase_add_test(clocks, drift_and_50_ms_are_no_jump);
	tcase_add_test(clocks, a_slow_answer_widens_the_bounds_instead_of_being_a_jump);
	tcase_add_test(clocks, a_step_back_is_the_new_truth_and_coming_back_from_it_a_jump);
	suite_add_tcase(suite, clocks);
	return suite;
}
