/* SPDX-License-Identifier: BSD-2-Clause */
/* What a permit that is asked for does next: it tries slots, waits in line, and stands in the queues of all slots. See ALGORITHMS.md, Semaphores. */
#ifndef CORE_PERMIT_STEP_H
#define CORE_PERMIT_STEP_H

#include "daemon/core/semaphore/permits.h"

/* Looks at the first of the permits that are due, of which there is one. Call when no notice is left, and deliver notices afterwards. */
void permit_step_next(struct request_context *x);
/* TIMER_PERMIT: its wait is over, or its client has not repeated the ACQUIRE. */
void permit_step_fired(struct request_context *x, struct permit *p);

#endif
