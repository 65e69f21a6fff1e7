/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/sim/redis/node.c: a simulated server carries out the daemon's calls, and what may happen to it. */
#include "tests/fixture/joined_node.h"

#include <stdio.h>

static void check_seen(const char *expected)
{
	ck_assert_msg(span_equal((struct span){buf_begin(&seen), buf_length(&seen)}, span_of(expected)), "%.*s",
		      (int)buf_length(&seen), buf_begin(&seen));
	buf_clear(&seen);
}

static bool there(struct span name)
{
	struct span value;
	int64_t expires_ms;

	return sim_node_get(node, name, now_us, &value, &expires_ms);
}

/* --- calls ----------------------------------------------------------------------------------------------------------- */

FIXTURE(.setup = setup, .teardown = teardown)

TEST(calls_are_answered_in_order_each_for_its_own_node)
{
	struct call c[5] = {
		{.id = 1, .node = 3, .kind = CALL_PROBE},
		acquiring(SPAN("a"), MINE),
		acquiring(SPAN("a"), THEIRS),
		releasing(SPAN("a"), MINE),
		{.id = 5, .kind = CALL_MARK, .marker = MARKER, .new_marker = SPAN("q|x")},
	};
	struct answer a[5];
	const char codes[] = "PGBRJ";
	size_t i;

	c[2].id = 3;
	c[2].node = 4;
	sim_node_call(node, c, 5, now_us, a);
	for (i = 0; i < 5; i++) {
		ck_assert_int_eq(a[i].code, codes[i]);
		ck_assert_int_eq(a[i].server_us, NOW);
		ck_assert_uint_eq(a[i].call, c[i].id);
		ck_assert_uint_eq(a[i].node, c[i].node);
	}
	ck_assert(span_equal(a[0].probe->marker, MARKER));
	ck_assert(span_equal(a[0].probe->run_id, SPAN(RUN_A)));
	ck_assert(span_equal(a[2].found, SPAN("d1:7")));
	ck_assert_int_eq(a[2].pttl_ms, 1000);
	ck_assert(span_equal(a[4].found, SPAN("q|x")));
	ck_assert(span_equal(sim_node_marker(node), SPAN("q|x")));
}

TEST(entries_under_another_marker_are_a_script_call_of_their_own)
{
	struct call c[2] = {acquiring(SPAN("a"), MINE), acquiring(SPAN("b"), MINE)};
	struct answer a[2];

	c[1].marker = SPAN("j|old");
	sim_node_call(node, c, 2, now_us, a);
	ck_assert_int_eq(a[0].code, 'G');
	ck_assert_int_eq(a[1].code, 'Q');
}

TEST(a_key_is_there_in_its_last_millisecond_and_not_in_the_next)
{
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	now_us = (NOW / 1000 + 1000) * 1000 + 999;
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS), 'B');
	ck_assert_int_eq(answer.pttl_ms, 0);
	ck_assert(there(SPAN("a")));
	now_us++;
	ck_assert(!there(SPAN("a")));
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS), 'G');
}

TEST(the_same_calls_give_the_same_answers)
{
	struct sim_node *other =
		sim_node_new(&(struct sim_node_conf){.key_prefix = "lock:", .skew_us = 60 * SEC, .run_id = RUN_A});
	struct call c = {.kind = CALL_MARK, .new_marker = MARKER};
	struct answer a;
	unsigned i;

	sim_node_call(other, &c, 1, NOW, &a);
	for (i = 0; i < 200; i++) {
		c = i % 3 ? acquiring(SPAN("a"), i % 2 ? MINE : THEIRS) : releasing(SPAN("a"), MINE);
		now_us += i * 100000 % 700000;
		sim_node_call(other, &c, 1, now_us, &a);
		call(c);
		ck_assert(a.code == answer.code && a.fence == answer.fence && a.pttl_ms == answer.pttl_ms);
		ck_assert(span_equal(a.found, answer.found));
	}
	sim_node_free(other);
}

/* --- what happens to servers ----------------------------------------------------------------------------------------- */

TEST(a_blank_restart_forgets_all_but_serves_at_once)
{
	acquire(SPAN("a"), MINE);
	sim_node_restart_blank(node, RUN_B);
	ck_assert_int_eq(sim_node_fence(node), 0);
	ck_assert_uint_eq(sim_node_marker(node).n, 0);
	ck_assert(span_equal(probe()->run_id, SPAN(RUN_B)));
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS), 'Q');
	ck_assert_int_eq(join(SPAN(""), MARKER), 'J');
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS), 'G');
}

TEST(a_whole_restart_keeps_all_that_has_not_expired)
{
	struct call c = acquiring(SPAN("b"), MINE);
	int64_t fence;

	acquire(SPAN("a"), MINE);
	c.px_ms = 5000;
	ck_assert_int_eq(call(c), 'G');
	fence = sim_node_fence(node);
	now_us += 2 * SEC;
	sim_node_restart_whole(node, RUN_B, now_us);
	ck_assert(span_equal(probe()->run_id, SPAN(RUN_B)));
	ck_assert(span_equal(sim_node_marker(node), MARKER));
	ck_assert_int_eq(sim_node_fence(node), fence);
	ck_assert(!there(SPAN("a")) && there(SPAN("b")));
}

TEST(an_old_restart_brings_back_the_snapshot_each_time_and_is_blank_without_one)
{
	int64_t fence;
	unsigned i;

	sim_node_restart_old(node, RUN_B, now_us);
	ck_assert_uint_eq(sim_node_marker(node).n, 0);
	join(SPAN(""), MARKER);
	acquire(SPAN("a"), MINE);
	fence = sim_node_fence(node);
	sim_node_snapshot(node);
	for (i = 0; i < 2; i++) {
		call(releasing(SPAN("a"), MINE));
		acquire(SPAN("b"), MINE);
		sim_node_restart_old(node, RUN_B, now_us);
		ck_assert(there(SPAN("a")) && !there(SPAN("b")));
		ck_assert_int_eq(sim_node_fence(node), fence);
	}
	now_us += 2 * SEC;
	sim_node_restart_old(node, RUN_A, now_us);
	ck_assert(!there(SPAN("a")));
}

TEST(a_flush_takes_the_keys_and_leaves_the_identity)
{
	acquire(SPAN("a"), MINE);
	sim_node_flush(node);
	ck_assert(!there(SPAN("a")));
	ck_assert(span_equal(probe()->run_id, SPAN(RUN_A)));
	ck_assert_uint_eq(probe()->marker.n, 0);
}

TEST(an_eviction_is_counted_until_the_next_restart)
{
	acquire(SPAN("a"), MINE);
	sim_node_evict(node, SPAN("a"));
	sim_node_evict(node, SPAN("a"));
	ck_assert(!there(SPAN("a")));
	ck_assert_int_eq(probe()->evicted, 1);
	sim_node_restart_whole(node, RUN_B, now_us);
	ck_assert_int_eq(probe()->evicted, 0);
}

TEST(an_error_that_meets_every_command_refuses_every_call)
{
	sim_node_fail(node, "LOADING Redis is loading the dataset in memory");
	ck_assert_int_eq(acquire(SPAN("a"), MINE), '-');
	ck_assert(span_equal(answer.text, SPAN("LOADING Redis is loading the dataset in memory")));
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), '-');
	ck_assert_int_eq(call((struct call){.kind = CALL_PROBE}), '-');
	sim_node_fail(node, "ERR something of its own");
	ck_assert_int_eq(acquire(SPAN("a"), MINE), '?');
	sim_node_fail(node, NULL);
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
}

TEST(a_server_short_of_memory_grants_nothing_but_frees)
{
	int64_t fence;

	acquire(SPAN("a"), MINE);
	fence = sim_node_fence(node);
	sim_node_fail(node, "OOM command not allowed when used memory > 'maxmemory'.");
	ck_assert_int_eq(acquire(SPAN("b"), MINE), '-');
	ck_assert_int_eq(sim_node_fence(node), fence);
	ck_assert_int_eq(probe()->defect, DEFECT_MEMORY);
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS), 'B');
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), 'R');
}

TEST(a_server_whose_disk_failed_neither_grants_nor_frees)
{
	acquire(SPAN("a"), MINE);
	sim_node_fail(node, "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.");
	ck_assert_int_eq(acquire(SPAN("b"), MINE), '-');
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), '-');
	ck_assert_int_eq(probe()->defect, DEFECT_DISK);
	ck_assert(there(SPAN("a")));
}

TEST(a_replica_refuses_writes_and_tells_its_role)
{
	acquire(SPAN("a"), MINE);
	sim_node_set_role(node, "slave", RUN_B);
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), '-');
	ck_assert(span_equal(probe()->role, SPAN("slave")));
	ck_assert(span_equal(probe()->replid, SPAN(RUN_B)));
	sim_node_set_role(node, "master", RUN_A);
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), 'R');
}

/* --- keys ------------------------------------------------------------------------------------------------------------ */

TEST(the_scripts_meet_foreign_values)
{
	sim_node_put(node, SPAN("a"), THEIRS, 0);
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'B');
	ck_assert_int_eq(answer.pttl_ms, -1);
	sim_node_put(node, SPAN("a"), SPAN("x"), NOW / 1000 + 70);
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'B');
	ck_assert_int_eq(answer.pttl_ms, 70);
	ck_assert_uint_eq(answer.found.n, 0);
	sim_node_put_hash(node, SPAN("a"), NOW / 1000 + 70);
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'K');
	ck_assert_int_eq(answer.pttl_ms, 70);
	sim_node_delete(node, SPAN("a"));
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
}

static void visit(void *context, struct span key, struct span value, int64_t expires_ms)
{
	ck_assert_ptr_eq(context, &seen);
	buf_printf(&seen, "%.*s=%.*s@%lld ", (int)key.n, key.p, (int)value.n, value.n ? value.p : "", (long long)expires_ms);
}

TEST(a_walk_meets_live_keys_in_their_order)
{
	sim_node_flush(node);
	sim_node_put(node, SPAN("b"), SPAN("2"), 7);
	sim_node_put(node, SPAN("aa"), SPAN("3"), 8);
	sim_node_put(node, SPAN("gone"), SPAN("4"), 6);
	sim_node_put_hash(node, SPAN("a"), 0);
	sim_node_each(node, 7999, visit, &seen);
	check_seen("lock:a=@0 lock:aa=3@8 lock:b=2@7 ");
}

static void changed(void *context, struct span key, struct span before, struct span after)
{
	ck_assert_ptr_eq(context, &seen);
	buf_printf(&seen, "%.*s:%.*s>%.*s ", (int)key.n, key.p, (int)before.n, before.n ? before.p : "", (int)after.n,
		   after.n ? after.p : "");
}

TEST(a_watcher_sees_every_change)
{
	join(MARKER, SPAN("q"));
	sim_node_flush(node);
	sim_node_watch(node, changed, &seen);
	join(SPAN(""), SPAN("q"));
	check_seen("redlockd:lock:!meta:>q ");
	sim_node_put(node, SPAN("a"), MINE, NOW / 1000);
	sim_node_put(node, SPAN("a"), THEIRS, NOW / 1000);
	sim_node_snapshot(node);
	check_seen("lock:a:>d1:7:00ff lock:a:d1:7:00ff>d2:8:11ee ");
	now_us += 1000;
	call(releasing(SPAN("a"), THEIRS));
	ck_assert_int_eq(answer.code, 'N');
	check_seen("lock:a:d2:8:11ee> ");
	sim_node_restart_old(node, RUN_B, now_us - 1000);
	check_seen("redlockd:lock:!meta:q> lock:a:>d2:8:11ee redlockd:lock:!meta:>q ");
	sim_node_restart_whole(node, RUN_A, now_us);
	sim_node_put(node, SPAN("b"), MINE, 0);
	sim_node_evict(node, SPAN("b"));
	sim_node_flush(node);
	check_seen("lock:a:d2:8:11ee> lock:b:>d1:7:00ff lock:b:d1:7:00ff> redlockd:lock:!meta:q> ");
}
