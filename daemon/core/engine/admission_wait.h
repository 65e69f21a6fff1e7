/* SPDX-License-Identifier: BSD-2-Clause */
/* Admission for the engine: adds the room that the stores have, a metric, and a timer that is set while something waits. */
#ifndef CORE_ADMISSION_WAIT_H
#define CORE_ADMISSION_WAIT_H

#include "daemon/core/round/engine_data.h"

/* Whether the entry may begin now. If not, the engine begins it when it may. See admission_queue(). */
bool admit(struct engine *e, struct admission_entry *x, struct instant urgent_at, struct origin *whose);
/* The next entry that may begin now; NULL: none. */
struct admission_entry *admission_wait_next(struct engine *e);
/* Sets the timer, so that entries that wait are looked at even if no store answers. */
void admission_wait_watch(struct engine *e);

#endif
