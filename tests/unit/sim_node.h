/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated server that has joined, and the daemon's calls to it. */
#ifndef UNIT_SIM_NODE_H
#define UNIT_SIM_NODE_H

#include "daemon/base/buf.h"
#include "tests/sim/redis/node.h"

#include <check.h>

#define NOW    INT64_C(1700000000123456)
#define MARKER SPAN("j|cfg")
#define MINE   SPAN("d1:7:00ff")
#define THEIRS SPAN("d2:8:11ee")
#define RUN_A  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct sim_node *node;
static int64_t now_us;
static struct answer answer;
static struct buf seen; /* what a watcher or a visitor was told */

static inline char call(struct call c)
{
	sim_node_call(node, &c, 1, now_us, &answer);
	return answer.class == ANSWER_EXECUTED ? answer.code : answer.class == ANSWER_REFUSED ? '-' : '?';
}

static inline struct call acquiring(struct span name, struct span value)
{
	return (struct call){.kind = CALL_ACQUIRE, .name = name, .value = value, .marker = MARKER, .px_ms = 1000};
}

static inline struct call releasing(struct span name, struct span value)
{
	return (struct call){.kind = CALL_RELEASE, .name = name, .value = value};
}

static inline char join(struct span from, struct span to)
{
	return call((struct call){.kind = CALL_JOIN, .marker = from, .new_marker = to});
}

static inline char acquire(struct span name, struct span value)
{
	return call(acquiring(name, value));
}

static inline const struct probe *probe(void)
{
	ck_assert_int_eq(call((struct call){.kind = CALL_PROBE}), 'P');
	return answer.probe;
}

static inline void setup(void)
{
	now_us = NOW;
	buf_init(&seen);
	node = sim_node_new(&(struct sim_node_conf){.key_prefix = "lock:", .skew_us = 60 * SEC, .run_id = RUN_A});
	ck_assert_int_eq(join(SPAN(""), MARKER), 'J');
}

static inline void teardown(void)
{
	sim_node_free(node);
	buf_release(&seen);
}

static inline TCase *cases(const char *name)
{
	TCase *c = tcase_create(name);

	tcase_add_checked_fixture(c, setup, teardown);
	return c;
}

#endif
