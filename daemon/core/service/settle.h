/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What became possible: notices and outcomes of homes are delivered, groups and permits go on, and sessions that are ready are served. It follows each timer
 * and each event.
 */
#ifndef CORE_SETTLE_H
#define CORE_SETTLE_H

#include "daemon/core/service/deliver.h"

/* Lets one group or permit go on that is due. */
void settle_due(struct commander *x);

/* Notices become lines. What they say of groups and permits makes these go on, which may make further notices. */
static inline void settle_notices(struct commander *x)
{
	if (x->engine->notices.count > 0)
		deliver_notices(x);
	while (x->due > 0)
		settle_due(x);
}

/* Serves one line. False: the session is no more. */
bool settle_line(struct commander *x, struct session *session, struct input line);
/* Serves the lines of this session that were read ahead, until it has to wait; its pointer may be dead then. False: the step has no time for more lines. */
bool settle_session(struct commander *x, struct session *session);
/* TIMER_HANDED: serves some of what waited before the restart, if the stores have spoken. */
void settle_handed(struct commander *x);
/* All of it, whatever the stores say: the daemon stops, and each request is answered. */
void settle_handed_all(struct commander *x);
/* Votes fell: a job that this has ended is lost before another line is served. */
void settle_fallen(struct commander *x);
/* All of it, until nothing more follows. */
void settle(struct commander *x);

#endif
