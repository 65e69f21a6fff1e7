/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who held a name before, for SHOW: the last holds of a name that lasted for FORMER_LEAST_US or longer and ended here, how long, and how each ended. So a quick
 * LOCK and UNLOCK pays one comparison. Only the FORMER_NAMES names that were used last are remembered, and none beyond the end of the daemon.
 */
#ifndef CORE_FORMER_HOLDERS_H
#define CORE_FORMER_HOLDERS_H

#include "daemon/core/session/request_context.h"

#define FORMER_LEAST_US (100 * MSEC)
#define FORMER_NAMES    1024
#define FORMER_HOLDS    4 /* of one name */

void former_note(struct request_context *x, const struct claim *c, const char *end);
/* Rows "role=former", the last hold first. Returns how many. */
unsigned former_rows(struct request_context *x, struct session *s, struct span tag, struct span name);
void formers_free(struct request_context *x);

/* The hold of the claim ends now. end: how, a static word. */
static inline void former(struct request_context *x, const struct claim *c, const char *end)
{
	if (x->core->now.us - c->granted_at.us >= FORMER_LEAST_US)
		former_note(x, c, end);
}

#endif
