/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/health.c: what looks healthy between two probes, and is not. */
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

FIXTURE(.teardown = cluster_close)

/* The probe writes next to nothing, so a server that is as good as full lets it pass. */
TEST(a_server_that_refuses_calls_and_no_probes_is_told)
{
	cluster_begin(1);
	passes(300 * MSEC); /* the last probe may have come before the server was full */
	refuses(0, "OOM command not allowed when used memory > 'maxmemory'.");
	says(1, "LOCK a");
	hears(1, "ERR *");
	ck_assert_str_eq(store_state(0, 0), "joined");
	says(1, "LOCK a");
	hears(1, "ERR *");
	ck_assert_str_eq(store_state(0, 0), "joined: it refused a call: OOM command not allowed when used memory > 'maxmemory'.");
	feels(0, MOOD_WELL);
	passes(59 * SEC);
	ck_assert_str_ne(store_state(0, 0), "joined");
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_key_of_another_type_is_told_until_the_name_is_granted)
{
	cluster_begin(1);
	memory_put_foreign(cluster.node[0].memory, SPAN("a"), INSTANT_NEVER);
	says(1, "LOCK a");
	hears(1, "ERR KIND *");
	ck_assert_str_eq(store_state(0, 0), "joined: it has a key of another type under the name of the lock a: it is no string");
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	ck_assert_str_ne(store_state(0, 0), "joined");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	says(1, "LOCK a");
	hears(1, GRANT);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_key_of_another_type_is_told_until_a_renewal_puts_the_key_there)
{
	cluster_begin(3);
	memory_put_foreign(cluster.node[0].memory, SPAN("a"), INSTANT_NEVER);
	says(1, "LOCK a");
	hears(1, GRANT);
	ck_assert_str_ne(store_state(0, 0), "joined");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	passes(3340 * MSEC);
	ck_assert(key_is_there(0, "a"));
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(the_longest_name_of_a_key_of_another_type_is_told_whole)
{
	char name[NAME_MAX_BYTES + 1], told[NAME_MAX_BYTES + 100];

	memset(name, 'n', NAME_MAX_BYTES);
	name[NAME_MAX_BYTES] = '\0';
	cluster_begin(1);
	memory_put_foreign(cluster.node[0].memory, (struct span){name, NAME_MAX_BYTES}, INSTANT_NEVER);
	says(1, "LOCK %s", name);
	hears(1, "ERR KIND *");
	says(1, "LIST nodes");
	snprintf(told, sizeof(told), "\\* node=* reason=*the name of the lock %s: it is no string*", name);
	hears(1, told);
}

/* 0: what locks do not need; 1: what they need; 2: the probe as a whole. */
LOOP_TEST(what_a_probe_was_refused_and_is_not_any_more_is_over_for_calls_too, 3)
{
	struct probe *probe = &cluster.node[0].probe;

	cluster_begin(1);
	refuses(0, "NOPERM this user has no permissions to run the 'publish' command");
	says(1, "LOCK a");
	hears(1, "ERR *");
	ck_assert_str_eq(store_state(0, 0), "joined: it refused a call: NOPERM this user has no permissions to run the 'publish' command");
	cluster.node[0].mute = _i == 2;
	probe->refusal = SPAN("PUBLISH NOPERM no");
	probe->defect = DEFECT_PERMISSION;
	probe->lesser = _i == 0;
	passes(1100 * MSEC);
	says(1, "LOCK a");
	hears(1, "ERR *");
	ck_assert_str_ne(store_state(0, 0), "joined");
	feels(0, MOOD_WELL);
	cluster.node[0].mute = false;
	probe->refusal = SPAN("");
	probe->defect = DEFECT_NONE;
	probe->lesser = false;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* A script that has run for too long may be over long before the next look. */
TEST(a_server_that_is_busy_with_a_script_is_asked_again_soon)
{
	unsigned asked;

	cluster_begin(1);
	cluster.node[0].mute = true;
	refuses(0, "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
	passes(1100 * MSEC);
	ck_assert_int_eq(strncmp(store_state(0, 0), "refused", 7), 0);
	asked = cluster.node[0].count[CALL_PROBE];
	cluster.node[0].mute = false;
	feels(0, MOOD_WELL);
	passes(260 * MSEC);
	ck_assert_uint_eq(cluster.node[0].count[CALL_PROBE], asked + 1);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* Each look finds it a little further behind, which is no jump; and a lone store has no other to be compared with. */
TEST(a_clock_that_runs_slow_is_told)
{
	cluster_begin(1);
	passes(2 * SEC);
	ck_assert_str_eq(store_told(0, 0), "joined");
	for (unsigned i = 0; i < 20; i++) {
		cluster.node[0].clock_us -= 30 * MSEC;
		passes(100 * MSEC);
	}
	passes(2 * SEC);
	ck_assert_str_eq(store_told(0, 0), "joined: its clock is 0.6 s behind this host's");
	says(1, "LOCK a");
	hears(1, "OK *");
	for (unsigned i = 0; i < 80; i++) {
		cluster.node[0].clock_us += 4 * MSEC;
		passes(100 * MSEC);
		if (i == 35)
			ck_assert_str_eq(store_told(0, 0), "joined: its clock is 0.4 s behind this host's"); /* else one at the edge would come and go */
	}
	passes(2 * SEC);
	ck_assert_str_eq(store_told(0, 0), "joined");
}

/* Slowly: a step ahead is a jump. */
static void clocks_go(unsigned from, unsigned to, int64_t us)
{
	int64_t step = us > 0 ? 4 * MSEC : -30 * MSEC;

	for (int64_t gone = 0; gone != us; gone += step) {
		for (unsigned n = from; n < to; n++)
			cluster.node[n].clock_us += step;
		passes(100 * MSEC);
	}
	passes(2 * SEC);
}

static void clock_is_told(int64_t apart)
{
	const char *line;

	says(1, "STATS");
	do {
		line = next_line(1);
		ck_assert_ptr_nonnull(line);
	} while (!strstr(line, "metric=clock_apart "));
	ck_assert_int_eq(number_in(line, "value"), apart);
	ignores(1);
}

TEST(a_clock_of_this_host_from_which_most_stores_differ_alike_is_told_once_and_is_no_fault_of_theirs)
{
	cluster_begin(3);
	clocks_go(0, 2, -600 * MSEC);
	ck_assert_str_eq(store_told(0, 0), "joined");
	ck_assert_str_eq(store_told(0, 1), "joined");
	ck_assert_str_eq(store_told(0, 2), "joined"); /* alone, but as this host */
	ck_assert(was_logged("clock reason=\"this host's clock is 0.? s ahead of most stores'\""));
	clock_is_told(1);
	clocks_go(2, 3, -1500 * MSEC);
	ck_assert_str_eq(store_told(0, 0), "joined");
	ck_assert_str_eq(store_told(0, 2), "joined: its clock is 1.5 s behind this host's"); /* nor as most stores */
	ck_assert(!was_logged("clock *"));
	clocks_go(2, 3, 900 * MSEC);
	ck_assert_str_eq(store_told(0, 2), "joined");
	clocks_go(0, 3, 600 * MSEC);
	ck_assert(was_logged("clock note=*"));
	clock_is_told(0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_str_eq(store_told(0, i), "joined");
	ck_assert(!was_logged("node *cause=clock*"));
}

TEST(a_clock_that_only_one_of_several_stores_shows_is_told_of_that_store)
{
	cluster_begin(3);
	clocks_go(1, 2, -600 * MSEC);
	ck_assert_str_eq(store_told(0, 0), "joined");
	ck_assert_str_eq(store_told(0, 1), "joined: its clock is 0.6 s behind this host's");
	ck_assert(!was_logged("clock *"));
}
