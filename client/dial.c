/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "client/dial.h"
#include "client/complaint.h"

struct redlock *dial(const char *addr)
{
	struct redlock *c;

	if (!redlock_open(addr, ANSWER_TIMEOUT_MS, &c))
		return c;
	complain("%s", redlock_errmsg(NULL));
	return NULL;
}
