/* SPDX-License-Identifier: BSD-2-Clause */
/* What a group does next: it asks for names, gives them back, waits, insists, and is answered. See ALGORITHMS.md, Groups. */
#ifndef CORE_GROUP_STEP_H
#define CORE_GROUP_STEP_H

#include "daemon/core/session/group.h"

/* Looks at the first of the groups that are due, of which there is one. Call when no notice is left, and deliver notices afterwards. */
void group_step_next(struct request_context *x);
/* TIMER_INSISTING: it has kept what it has for long enough. TIMER_LAPSE: the client has not repeated the request. */
void group_step_fired(struct request_context *x, struct timer *t);
/* The session has sent its last line: its groups wait for no holder any more. A group that asks without waiting is still answered. */
void group_step_finish_up(struct request_context *x, struct session *s);

#endif
