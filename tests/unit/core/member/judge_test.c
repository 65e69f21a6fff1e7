/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/probe.c: which stores must not be used, and what the daemon says of them. */
#include "daemon/core/member/members.h"
#include "daemon/core/member/membership.h"
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <stdio.h>

FIXTURE(.teardown = cluster_close)

TEST(a_replica_is_refused_and_welcome_once_it_is_a_master)
{
	cluster_begin(3);
	cluster.node[0].probe.role = SPAN("slave");
	store_becomes("refused: it is a replica: only a master may hold locks");
	cluster.node[0].probe.role = SPAN("master");
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* LIST nodes tells the refusal of the first store in a word, too. */
static void check_cause(const char *cause)
{
	char row[80];

	snprintf(row, sizeof(row), "\\* node=a state=refused reason=* cause=%s *", cause);
	says(1, "LIST nodes");
	hears(1, row);
	ignores(1);
}

TEST(a_store_that_does_not_say_whether_it_is_a_master_is_refused)
{
	cluster_begin(3);
	cluster.node[0].probe.role = SPAN("");
	store_becomes("refused: INFO tells no role");
}

TEST(a_store_that_loads_its_data_is_refused)
{
	cluster_begin(3);
	cluster.node[0].probe.loading = true;
	store_becomes("refused: it is loading its data");
	check_cause("loading");
}

LOOP_TEST(a_store_that_refuses_info_is_refused_and_told_why, 3)
{
	static const struct {
		const char *refusal, *reason, *cause;
		enum defect defect;
	} row[] = {
		{"INFO ERR The user executing the script can't", "refused: it refuses INFO: ERR The user executing the script can't", "permission",
		 DEFECT_PERMISSION},
		{"INFO ERR Unknown Redis command", "refused: it refuses INFO: ERR Unknown Redis command", "command", DEFECT_COMMAND},
		{"", "refused: INFO tells no run_id", "other", DEFECT_NONE},
	};

	cluster_begin(3);
	cluster.node[0].probe.run_id = SPAN("");
	cluster.node[0].probe.refusal = span_of(row[_i].refusal);
	cluster.node[0].probe.defect = row[_i].defect;
	store_becomes(row[_i].reason);
	check_cause(row[_i].cause);
	cluster.node[0].probe.run_id.p = NULL;
}

TEST(a_store_that_may_evict_locks_is_refused_and_told_what_to_set)
{
	cluster_begin(3);
	cluster.node[0].probe.maxmemory = 1000000;
	cluster.node[0].probe.policy = SPAN("volatile-lru");
	store_becomes("refused: maxmemory-policy is volatile-lru, which evicts locks: set noeviction");
	check_cause("evicts");
}

TEST(a_policy_does_not_matter_without_a_limit_of_memory)
{
	cluster_begin(1);
	cluster.node[0].probe.policy = SPAN("allkeys-lru");
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(the_same_server_twice_counts_once)
{
	cluster_open(3);
	cluster.node[1].probe.run_id = span_of(cluster.node[0].run_id);
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 1), "refused: it is the same server as a");
	says(1, "LIST nodes");
	hears(1, "\\* node=a state=joined *");
	hears(1, "\\* node=b state=refused reason=* cause=duplicate *");
	ignores(1);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
	falls(2);
	says(1, "LOCK a");
	hears(1, "ERR QUORUM *");
	cluster.node[1].probe.run_id = SPAN("");
	cluster.node[1].probe.run_id.p = NULL;
}

/* It says so by each probe, whatever it was asked for before. */
TEST(a_store_that_refuses_what_locks_need_is_refused_until_it_does_not)
{
	cluster_begin(3);
	cluster.node[0].probe.refusal = SPAN("SET OOM command not allowed when used memory > 'maxmemory'.");
	cluster.node[0].probe.defect = DEFECT_MEMORY;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "refused: it refuses SET: OOM command not allowed when used memory > 'maxmemory'.");
	ck_assert(was_logged("node node=a state=refused cause=memory reason=*"));
	check_cause("memory");
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	cluster.node[0].probe.refusal = SPAN("");
	cluster.node[0].probe.defect = DEFECT_NONE;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert(was_logged("node node=a state=joined cause=memory *"));
}

TEST(a_store_that_refuses_what_locks_do_not_need_votes_and_says_so)
{
	cluster_begin(1);
	cluster.node[0].probe.refusal = SPAN("ZCARD ERR The user executing the script can't");
	cluster.node[0].probe.defect = DEFECT_PERMISSION;
	cluster.node[0].probe.lesser = true;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined: it refuses ZCARD: ERR The user executing the script can't");
	ck_assert(was_logged("node node=a state=joined cause=permission reason=*"));
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	cluster.node[0].probe.refusal = SPAN("");
	cluster.node[0].probe.defect = DEFECT_NONE;
	cluster.node[0].probe.lesser = false;
}

TEST(another_configuration_of_the_same_generation_is_refused_and_never_overwritten)
{
	struct span marker;

	cluster_begin(3);
	cluster.conf.set = "others";
	daemon_starts(1);
	passes(100 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 0);
	ck_assert_ptr_nonnull(strstr(store_state(1, 0), "refused: it belongs to another configuration"));
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
	marker = memory_marker(cluster.node[0].memory);
	ck_assert_int_eq(marker.p[0], 'j');
}

LOOP_TEST(every_setting_that_must_be_the_same_is_in_the_configuration, 3)
{
	cluster_begin(3);
	switch (_i) {
	case 0:
		cluster.conf.max_lease_us = 20 * SEC;
		break;
	case 1:
		cluster.conf.max_delay_us = SEC;
		break;
	case 2:
		cluster.conf.set = "sets";
		break;
	}
	daemon_starts(1);
	ck_assert_ptr_nonnull(strstr(store_state(1, 0), "refused: it belongs to another configuration"));
}

TEST(a_higher_generation_takes_over_and_the_lower_one_is_refused)
{
	held_after_lock(3, "LOCK a");
	cluster.conf.generation = 2;
	cluster.conf.set = "new";
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

LOOP_TEST(nonsense_in_the_marker_is_no_configuration_and_no_join, 5)
{
	static const char *const marker[] = {"j", "x", "||||", "j|1.0||run|", "jj|a|b|c|d"};

	cluster_open(1);
	marker_is_set(0, marker[_i]);
	cluster.conf.trust_first_start = false;
	daemon_starts(0);
	passes(5 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
}

/* --- what a server says instead of an answer --- */

LOOP_TEST(a_server_that_refuses_a_probe_is_refused_with_what_to_do, 10)
{
	static const struct {
		const char *says, *state;
	} row[] = {
		{"CROSSSLOT Keys in request don't hash to the same slot", "refused: it is in cluster mode: only a server of its own may hold locks"},
		{"CLUSTERDOWN Hash slot not served", "refused: it is in cluster mode: only a server of its own may hold locks"},
		{"MOVED 1234 127.0.0.1:7001", "refused: it is in cluster mode: only a server of its own may hold locks"},
		{"LOADING Redis is loading the dataset in memory", "refused: it is loading its data"},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		 "refused: it is a replica: only a master may hold locks"},
		{"NOPERM this user has no permissions to run the 'evalsha' command",
		 "refused: it does not permit all that locks need: NOPERM this user has no permissions to run the 'evalsha' command"},
		{"ERR The user executing the script can't run this command or subcommand script: x",
		 "refused: it does not permit all that locks need: ERR The user executing the script can't run this command or subcommand script: x"},
		{"MISCONF Redis is configured to save RDB snapshots",
		 "refused: it refuses writes: MISCONF Redis is configured to save RDB snapshots"},
		{"OOM command not allowed", "refused: it refuses writes: OOM command not allowed"},
		{"NOREPLICAS Not enough good replicas to write.", "refused: it refuses writes: NOREPLICAS Not enough good replicas to write."},
	};

	cluster_begin(3);
	passes(2 * SEC);
	cluster.node[0].mute = true;
	refuses(0, row[_i].says);
	was_logged("*");
	store_becomes(row[_i].state);
	ck_assert_msg(was_logged("node node=a state=refused *"), "it is told");
	passes(5 * SEC);
	ck_assert_msg(!was_logged("node *"), "and told once");
	cluster.node[0].mute = false;
	feels(0, MOOD_WELL);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_store_that_refuses_to_be_joined_is_told_once_as_well)
{
	static const char refused[] = "refused: it refuses writes: OOM command not allowed";

	cluster_begin(3);
	restarts_blank(0);
	passes(20 * SEC);
	refuses(0, "OOM command not allowed");
	passes(12 * SEC);
	ck_assert_str_eq(store_state(0, 0), refused);
	while (was_logged("node *"))
		continue;
	for (unsigned i = 0; i < 40; i++) {
		passes(100 * MSEC);
		ck_assert_str_eq(store_state(0, 0), refused);
	}
	ck_assert_msg(!was_logged("node *"), "told once");
	feels(0, MOOD_WELL);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(nine_stores_are_a_quorum_of_five)
{
	cluster_begin(9);
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
