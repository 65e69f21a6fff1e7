/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/sim/redis/probe_memo.c: a remembered probe says what a probe that is run would say. */
#include "tests/sim/redis/probe_memo.h"
#include "tests/sim/redis/node.h"

#include <check.h>
#include <stdio.h>

#define NOW   INT64_C(1700000000000000)
#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct sim_node *node;
static struct answer answer;
static int64_t now_us;

static void setup(void)
{
	now_us = NOW;
	node = sim_node_new(&(struct sim_node_conf){.key_prefix = "lock:", .skew_us = 60000000, .run_id = RUN_A});
}

static void teardown(void)
{
	sim_node_free(node);
}

static const struct answer *ask(struct call call)
{
	now_us += 1000;
	call.id = (uint64_t)now_us;
	call.node = (unsigned)(now_us % 7);
	sim_node_call(node, &call, 1, now_us, &answer);
	ck_assert_uint_eq(answer.call, call.id);
	ck_assert_uint_eq(answer.node, call.node);
	return &answer;
}

static const struct probe *probe(void)
{
	const struct answer *a = ask((struct call){.kind = CALL_PROBE});

	ck_assert_int_eq(a->class, ANSWER_EXECUTED);
	ck_assert_int_eq(a->server_us, now_us);
	return a->probe;
}

/* Often enough that at least one probe is really run. */
#define OFTEN(condition)                            \
	for (int i = 0; i < 3 * MEMO_TRUST; i++) \
	ck_assert(condition)

FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_probe_says_the_same_while_nothing_changes_but_the_clock)
{
	OFTEN(span_equal(probe()->run_id, SPAN(RUN_A)) && probe()->marker.n == 0);
}

TEST(a_probe_says_what_has_changed_since_the_last_one)
{
	probe();
	ask((struct call){.kind = CALL_MARK, .marker = SPAN(""), .new_marker = SPAN("j|x")});
	OFTEN(span_equal(probe()->marker, SPAN("j|x")) && answer.fence == NOW + 60000000 + 2000);
	sim_node_put(node, SPAN("a"), SPAN("v"), 0);
	sim_node_evict(node, SPAN("a"));
	OFTEN(probe()->evicted == 1);
	sim_node_set_role(node, "slave", RUN_B);
	OFTEN(span_equal(probe()->role, SPAN("slave")) && span_equal(answer.probe->replid, SPAN(RUN_B)));
	sim_node_set_role(node, "master", RUN_A);
	OFTEN(span_equal(probe()->role, SPAN("master")));
	sim_node_fail(node, "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.");
	OFTEN(probe()->defect == DEFECT_DISK);
	sim_node_fail(node, "LOADING Redis is loading the dataset in memory");
	OFTEN(ask((struct call){.kind = CALL_PROBE})->class == ANSWER_REFUSED);
	sim_node_fail(node, NULL);
	OFTEN(!probe()->defect);
	sim_node_restart_blank(node, RUN_B);
	OFTEN(span_equal(probe()->run_id, SPAN(RUN_B)) && probe()->marker.n == 0 && probe()->evicted == 0);
}

TEST(a_probe_that_says_otherwise_than_the_last_one_that_read_the_same_is_found)
{
	struct model model = {.role = "master", .now_us = NOW};
	const struct memo_read read = {&model, SPAN("m"), SPAN("1"), SPAN("n")};
	struct probe p = {.marker = SPAN("m"), .maxmemory = 7};
	struct answer a = {.class = ANSWER_EXECUTED, .server_us = NOW, .probe = &p};
	struct memo m;

	memo_init(&m);
	ck_assert(memo_keep(&m, &read, &a) && memo_keep(&m, &read, &a));
	p.maxmemory = 8;
	ck_assert(!memo_keep(&m, &read, &a));
	memo_forget(&m);
	ck_assert(memo_keep(&m, &read, &a));
	a.fence = 3;
	ck_assert(!memo_keep(&m, &read, &a));
	memo_release(&m);
}
