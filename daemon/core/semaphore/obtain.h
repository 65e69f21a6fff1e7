/* SPDX-License-Identifier: BSD-2-Clause */
/* What a permit that is asked for does next: it tries slots, waits in line, and stands in the queues of all slots. See ALGORITHMS.md, Semaphores. */
#ifndef CORE_OBTAIN_H
#define CORE_OBTAIN_H

#include "daemon/core/semaphore/permits.h"

/* Looks at the first of the permits that are due, of which there is one. Call when no notice is left, and deliver notices afterwards. */
void obtain_next(struct commander *x);
/* TIMER_PERMIT: its wait is over, or its client has not repeated the ACQUIRE. */
void obtain_fired(struct commander *x, struct permit *p);

#endif
