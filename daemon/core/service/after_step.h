/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What became possible: notices and outcomes of homes are delivered, groups and permits go on, and sessions that are ready are served. It follows each timer
 * and each event.
 */
#ifndef CORE_AFTER_STEP_H
#define CORE_AFTER_STEP_H

#include "daemon/core/service/deliver.h"

/* Lets one group or permit go on that is due. */
void after_step_due(struct request_context *x);

/* Notices become lines. What they say of groups and permits makes these go on, which may make further notices. */
static inline void after_step_notices(struct request_context *x)
{
	if (x->engine->notices.count > 0)
		deliver_notices(x);
	while (x->due > 0)
		after_step_due(x);
}

/* Serves one line. False: the session is gone. */
bool after_step_line(struct request_context *x, struct session *session, struct input line);
/* Serves the lines of this session that were read ahead, until it has to wait; its pointer may be dead then. False: the step has no time for more lines. */
bool after_step_session(struct request_context *x, struct session *session);
/* TIMER_HANDED: serves some of what waited before the restart, if the stores have spoken. */
void after_step_handed(struct request_context *x);
/* All of it, whatever the stores say: the daemon stops, and each request is answered. */
void after_step_handed_all(struct request_context *x);
/* Votes fell: a job that this has ended is lost before another line is served. */
void after_step_fallen(struct request_context *x);
/* All of it, until nothing more follows. */
void settle(struct request_context *x);

#endif
