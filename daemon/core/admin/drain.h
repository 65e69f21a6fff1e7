/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drain: the daemon grants nothing new, waits until nobody holds anything, or for as long as an administrator said, and then may be stopped. Who holds
 * something goes on as before. It ends with EVENT_STOP alone, whether the drain is over or not.
 */
#ifndef CORE_DRAIN_H
#define CORE_DRAIN_H

#include "daemon/core/session/request_context.h"

/*
 * Begins, or has another end from now on: after in_us, though somebody still holds; negative: not before nobody does. All that waits for something new is
 * refused, and subscribers are told.
 */
void drain_begin(struct request_context *x, int64_t in_us);
/* TIMER_DRAIN: it has lasted for as long as it may. */
void drain_fired(struct request_context *x);
/* drain.more: refuses more of the crowd. */
void drain_again(struct request_context *x);
/* The daemon may be stopped: it drains, and nobody has or waits for anything, or the time is over. It looks at some sessions a time: to be asked again. */
bool drain_is_over(struct request_context *x);

#endif
