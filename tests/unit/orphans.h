/* SPDX-License-Identifier: BSD-2-Clause */
/* Votes that stay split on the stage. */
#ifndef UNIT_ORPHANS_H
#define UNIT_ORPHANS_H

#include "tests/unit/stage.h"

/* At each node the value of another daemon, so nobody has a quorum. */
static inline void orphans_everywhere(void)
{
	static const char *const value[] = {"d1:1:00", "d2:2:00", "d3:3:00", "d4:4:00", "d5:5:00"};

	for (unsigned i = 0; i < stage.conf.nodes; i++)
		key_is_overwritten(i, "a", value[i], 500 * SEC);
}

#endif
