/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/redis/lua and daemon/store/memory.c: calls for one value that a store carries out in another order than they were sent in, because a newer
 * connection overtakes one that broke. Both the memory store and the scripts on a simulated node.
 */
#include "daemon/store/memory.h"
#include "tests/sim/redis/node.h"

#include <check.h>

#define EPOCH  INT64_C(1700000000000000)
#define MARKER SPAN("j|cfg")
#define MINE   SPAN("d1:7:00ff")
#define KEPT   SPAN("d1:9:22dd")
#define THEIRS SPAN("d2:8:11ee")

static struct memory *memory;
static struct sim_node *node;
static int64_t now_us;
static struct answer answer;

static void memory_carries_out(const struct call *c)
{
	memory_call(memory, c, (struct instant){now_us}, &answer);
}

static void node_carries_out(const struct call *c)
{
	sim_node_call(node, c, 1, EPOCH + now_us, &answer);
}

static void (*const carries_out[])(const struct call *c) = {memory_carries_out, node_carries_out};
#define STORES (int)(sizeof(carries_out) / sizeof(*carries_out))

static char call(int store, struct call c)
{
	c.name = SPAN("a");
	carries_out[store](&c);
	return answer.code;
}

static char acquire(int store, struct span value, int64_t px_ms)
{
	return call(store, (struct call){.kind = CALL_ACQUIRE, .value = value, .marker = MARKER, .px_ms = px_ms});
}

static char put_back(int store, struct span value, int64_t px_ms)
{
	return call(store, (struct call){.kind = CALL_EXTEND, .value = value, .new_value = value, .marker = MARKER, .px_ms = px_ms, .create = true});
}

static void setup(void)
{
	const struct memory_conf conf = {.seed = {1, 2}, .epoch_us = EPOCH, .skew_us = 60 * SEC, .run_id = "run"};

	now_us = 5 * SEC;
	memory = memory_new(&conf);
	node = sim_node_new(&(struct sim_node_conf){.key_prefix = "lock:", .skew_us = 60 * SEC, .run_id = "run"});
	for (int store = 0; store < STORES; store++)
		ck_assert_int_eq(call(store, (struct call){.kind = CALL_MARK, .marker = SPAN(""), .new_marker = MARKER}), 'J');
}

static void teardown(void)
{
	memory_free(memory);
	sim_node_free(node);
}

FIXTURE(.setup = setup, .teardown = teardown)

/* Its daemon counts on what the renewal promised. */
LOOP_TEST(an_acquire_that_a_longer_renewal_has_overtaken_does_not_shorten_the_key, STORES)
{
	ck_assert_int_eq(put_back(_i, MINE, 5000), 'A');
	now_us += 10 * MSEC;
	ck_assert_int_eq(acquire(_i, MINE, 1000), 'G');
	ck_assert_int_eq(answer.pttl_ms, 4990);
	now_us += 4990 * MSEC;
	ck_assert_int_eq(acquire(_i, THEIRS, 1000), 'B');
	now_us += MSEC;
	ck_assert_int_eq(acquire(_i, THEIRS, 1000), 'G');
}

/* The acquire vouches for as long as it asks for. */
LOOP_TEST(an_acquire_that_a_shorter_renewal_has_overtaken_lengthens_the_key, STORES)
{
	ck_assert_int_eq(put_back(_i, MINE, 1000), 'A');
	now_us += 10 * MSEC;
	ck_assert_int_eq(acquire(_i, MINE, 5000), 'G');
	ck_assert_int_eq(answer.pttl_ms, 5000);
	now_us += 5000 * MSEC;
	ck_assert_int_eq(acquire(_i, THEIRS, 1000), 'B');
}

static char leave_behind(int store, int64_t px_ms)
{
	return call(store, (struct call){.kind = CALL_EXTEND, .value = MINE, .new_value = KEPT, .marker = MARKER, .px_ms = px_ms, .exact = true});
}

/* It was sent again over the new connection, because its answer was lost. The name is kept no longer for that. */
LOOP_TEST(a_key_that_is_kept_twice_is_kept_from_the_first_time_on, STORES)
{
	ck_assert_int_eq(acquire(_i, MINE, 1000), 'G');
	ck_assert_int_eq(leave_behind(_i, 5000), 'E');
	ck_assert_int_eq(answer.pttl_ms, 5000);
	now_us += 4000 * MSEC;
	ck_assert_int_eq(leave_behind(_i, 5000), 'E');
	ck_assert_int_eq(answer.pttl_ms, 1000);
	ck_assert_int_eq(acquire(_i, MINE, 9000), 'B');
	now_us += 1001 * MSEC;
	ck_assert_int_eq(leave_behind(_i, 5000), 'M');
	ck_assert_int_eq(acquire(_i, THEIRS, 1000), 'G');
}
