/* SPDX-License-Identifier: BSD-2-Clause */
/* One session of the stage that asks for more names than the stores may be asked of at a time. */
#ifndef UNIT_CROWD_H
#define UNIT_CROWD_H

#include "tests/unit/stage.h"

#include <check.h>

#define MANY 40

/* The first daemon, joined at its stores, each of which may owe it no more answers than that. */
static inline void begins_with_window(unsigned nodes, unsigned window)
{
	stage_open(nodes);
	stage.conf.window = window;
	daemon_starts(0);
	passes(11 * SEC);
}

static inline void says_of_many(unsigned k, const char *verb, const char *fields)
{
	for (unsigned i = 0; i < MANY; i++)
		says(k, "@%u %s many-%u-%u %s", i, verb, k, i, fields);
}

static inline void hears_of_many(unsigned k)
{
	for (unsigned i = 0; i < MANY; i++)
		hears(k, "@* OK name=many-*");
}

/* Session k asks for so much that this store, which answers nothing, owes twice its window. */
static inline void is_full(unsigned node, unsigned k)
{
	feels(node, MOOD_SILENT);
	for (unsigned i = 0; i < 2 * stage.conf.window; i++)
		says(k, "@%u LOCK full-%u", i, i);
	ck_assert_uint_ge(waiting_at(node), 2 * stage.conf.window);
	ignores(k);
}

#endif
