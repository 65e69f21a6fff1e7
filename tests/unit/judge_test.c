/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/judge.c: which stores must not be used, and how that is told; what proves that a clock jumped. */
#include "daemon/core/judge.h"
#include "daemon/core/quorum.h"
#include "tests/unit/stage_part.h"

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

/* Tolerances as the daemon has them, before the stores are there. */
static void clocks_matter(unsigned nodes)
{
	stage_open(nodes);
	stage.conf.clock_tol_us = clock_tol_us(nodes, stage.conf.max_lease_us, 0);
	for (unsigned i = 0; i < nodes; i++)
		node_is_born(i);
}

#define AHEAD  "refused: its clock is more than 5000 ms ahead of the other servers': set it right"
#define BEHIND "refused: its clock is more than 5000 ms behind the other servers': set it right"

START_TEST(a_store_whose_clock_is_off_is_refused_and_used_again_once_it_is_right)
{
	static const int64_t step[] = {3600 * SEC, -3600 * SEC, 6 * SEC, -6 * SEC};

	clocks_matter(3);
	stage.node[0].clock_us = step[_i];
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), step[_i] > 0 ? AHEAD : BEHIND);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
	was_logged("*"); /* all so far */
	state_becomes(step[_i] > 0 ? AHEAD : BEHIND);
	ck_assert_msg(!was_logged("node *"), "a refusal is told once");
	stage.node[0].clock_us = 0;
	passes(2 * quarantine_us(stage.conf.max_lease_us, 0));
	ck_assert_str_eq(store_state(0, 0), "joined");
}
END_TEST

START_TEST(clocks_within_the_tolerance_are_all_used)
{
	clocks_matter(3);
	stage.node[0].clock_us = 4900 * MSEC;
	stage.node[1].clock_us = -4900 * MSEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
	/* And the fence that a join lifted where the clock is ahead is in nobody's way, whoever is asked with it. */
	for (unsigned i = 1; i < 3; i++) {
		falls(i);
		says(1, "LOCK a");
		passes(5 * MSEC);
		hears(1, GRANT);
		passes(8 * SEC);
		hears_nothing(1); /* renewals carry its floor */
		says(1, "UNLOCK a");
		hears(1, "OK *");
		comes(i);
		passes(2 * SEC);
	}
}
END_TEST

START_TEST(who_hovers_at_the_edge_is_not_taken_in_and_out)
{
	clocks_matter(3);
	stage.node[0].clock_us = -5100 * MSEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), BEHIND);
	stage.node[0].clock_us = -4900 * MSEC;
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), BEHIND);
	stage.node[0].clock_us = -3900 * MSEC;
	passes(3 * SEC);
	ck_assert_str_ne(store_state(0, 0), BEHIND);
}
END_TEST

START_TEST(of_two_stores_the_one_that_disagrees_with_this_host_is_refused)
{
	clocks_matter(2);
	stage.node[1].clock_us = -60 * SEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 1), BEHIND);
	ck_assert_str_ne(store_state(0, 0), AHEAD);
}
END_TEST

START_TEST(one_store_alone_may_have_whatever_clock)
{
	clocks_matter(1);
	stage.node[0].clock_us = -3600 * SEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}
END_TEST

START_TEST(the_clock_of_this_host_does_not_matter_where_the_stores_agree)
{
	clocks_matter(5);
	for (unsigned i = 0; i < 5; i++)
		stage.node[i].clock_us = 7200 * SEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 5);
}
END_TEST

START_TEST(a_jump_is_marked_for_all_daemons_though_the_clock_is_off)
{
	clocks_matter(3);
	daemon_starts(0);
	passes(3 * SEC);
	stage.node[0].clock_us = 40 * SEC;
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), AHEAD);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	/* The time of the quarantine runs meanwhile, and no join comes of it before the clock is right. */
	passes(quarantine_us(stage.conf.max_lease_us, 0) + 5 * SEC);
	ck_assert_str_eq(store_state(0, 0), AHEAD);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	stage.node[0].clock_us = 0;
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}
END_TEST

START_TEST(a_blank_store_with_a_clock_behind_has_a_greater_fence_than_the_one_it_replaces)
{
	int64_t tol, fence;

	clocks_matter(3);
	tol = stage.conf.clock_tol_us;
	stage.node[0].clock_us = tol - SEC / 10;
	daemon_starts(0);
	passes(3 * SEC);
	/* All that a script lets a fence run ahead of that clock. */
	fence = STAGE_WALL_US + stage.now.us + stage.node[0].clock_us + stage.conf.skew_us + 2 * tol;
	memory_set_fence(stage.node[0].memory, fence);
	stage.node[0].clock_us = -tol + SEC / 10;
	restarts_blank(0);
	passes(2 * SEC + quarantine_us(stage.conf.max_lease_us, 0));
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_int_gt(memory_fence(stage.node[0].memory), fence);
}
END_TEST

START_TEST(the_tolerance_is_a_fifth_of_the_longest_lease_and_five_seconds_at_most)
{
	ck_assert_int_eq(clock_tol_us(3, 30 * SEC, 0), 5 * SEC);
	ck_assert_int_eq(clock_tol_us(3, SEC, SEC), 400 * MSEC);
	ck_assert_int_eq(clock_tol_us(1, 30 * SEC, 0), 0);
	for (int64_t lease = 100 * MSEC; lease < 1000 * SEC; lease += 7 * SEC + 3) {
		int64_t advanced = quarantine_us(lease, 0) - drift_us(2 * lease);

		ck_assert_int_ge(advanced, 4 * clock_tol_us(9, lease, 0));
	}
}
END_TEST

/* --- what a server says instead of an answer --- */

START_TEST(a_server_that_refuses_a_probe_is_refused_with_what_to_do)
{
	static const struct {
		const char *says, *state;
	} row[] = {
		{"CROSSSLOT Keys in request don't hash to the same slot", "refused: it is in cluster mode: only a server of its own may hold locks"},
		{"CLUSTERDOWN Hash slot not served", "refused: it is in cluster mode: only a server of its own may hold locks"},
		{"MOVED 1234 127.0.0.1:7001", "refused: it is in cluster mode: only a server of its own may hold locks"},
		{"LOADING Redis is loading the dataset in memory", "refused: it is loading its data"},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		 "refused: it is a replica without its master: only a master may hold locks"},
		{"NOPERM this user has no permissions to run the 'evalsha' command",
		 "refused: it does not permit all that locks need: see REDIS ACCESS in redlockd(8)"},
		{"ERR The user executing the script can't run this command or subcommand script: x",
		 "refused: it does not permit all that locks need: see REDIS ACCESS in redlockd(8)"},
		{"MISCONF Redis is configured to save RDB snapshots",
		 "refused: it refuses writes: MISCONF Redis is configured to save RDB snapshots"},
		{"OOM command not allowed", "refused: it refuses writes: OOM command not allowed"},
	};

	stage_begin(3);
	passes(2 * SEC);
	stage.node[0].mute = true;
	refuses(0, row[_i].says);
	was_logged("*");
	state_becomes(row[_i].state);
	ck_assert_msg(was_logged("node node=a state=refused *"), "it is told");
	passes(5 * SEC);
	ck_assert_msg(!was_logged("node *"), "and told once");
	stage.node[0].mute = false;
	feels(0, MOOD_WELL);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}
END_TEST

START_TEST(nine_stores_are_a_quorum_of_five)
{
	stage_begin(9);
	passes(2 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 9);
	for (unsigned i = 0; i < 4; i++)
		falls(i);
	says(1, "LOCK a");
	hears(1, GRANT);
	passes(20 * SEC);
	hears_nothing(1);
	says(2, "LOCK a");
	hears(2, "BUSY name=a *");
	falls(4);
	says(2, "LOCK b");
	passes(60 * MSEC);
	hears(2, "ERR QUORUM 4 of 9 *");
	passes(10 * SEC);
	hears(1, "! RISK *");
	hears(1, "! LOST name=a fence=* reason=quorum");
	ignores(2);
}
END_TEST

Suite *judge_suite(void)
{
	Suite *suite = suite_create("judge");
	TCase *fitness = tcase_create("fitness"), *clocks = tcase_create("clocks"), *sane = tcase_create("sane");

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
	tcase_add_loop_test(fitness, a_server_that_refuses_a_probe_is_refused_with_what_to_do, 0, 9);
	tcase_add_test(fitness, nine_stores_are_a_quorum_of_five);
	tcase_add_checked_fixture(sane, NULL, stage_close);
	tcase_add_loop_test(sane, a_store_whose_clock_is_off_is_refused_and_used_again_once_it_is_right, 0, 4);
	tcase_add_test(sane, clocks_within_the_tolerance_are_all_used);
	tcase_add_test(sane, who_hovers_at_the_edge_is_not_taken_in_and_out);
	tcase_add_test(sane, of_two_stores_the_one_that_disagrees_with_this_host_is_refused);
	tcase_add_test(sane, one_store_alone_may_have_whatever_clock);
	tcase_add_test(sane, the_clock_of_this_host_does_not_matter_where_the_stores_agree);
	tcase_add_test(sane, a_jump_is_marked_for_all_daemons_though_the_clock_is_off);
	tcase_add_test(sane, a_blank_store_with_a_clock_behind_has_a_greater_fence_than_the_one_it_replaces);
	suite_add_tcase(suite, sane);
	tcase_add_test(clocks, the_tolerance_is_a_fifth_of_the_longest_lease_and_five_seconds_at_most);
	tcase_add_test(clocks, the_first_look_at_a_clock_proves_nothing);
	tcase_add_test(clocks, drift_and_50_ms_are_no_jump);
	tcase_add_test(clocks, a_slow_answer_widens_the_bounds_instead_of_being_a_jump);
	tcase_add_test(clocks, a_step_back_is_the_new_truth_and_coming_back_from_it_a_jump);
	suite_add_tcase(suite, clocks);
	return suite;
}
