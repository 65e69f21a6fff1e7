/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking admission in the engine's name: with the stores' room, counted, and with a timer behind who waits. */
#ifndef CORE_ADMIT_H
#define CORE_ADMIT_H

#include "daemon/core/parts.h"

/* Whether it may begin now. If not, the engine begins it when it may. urgent_at: of a lease, when half of it is over. */
bool admit(struct engine *e, struct admission_entry *x, struct instant urgent_at);
/* The next that may begin now, NULL: nobody. */
struct admission_entry *admit_next(struct engine *e);
/* Those who wait are looked after even when no store says a word. */
void admit_watch(struct engine *e);

#endif
