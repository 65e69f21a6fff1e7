/* SPDX-License-Identifier: BSD-2-Clause */
/* Readers that the watchdog does not keep, and whose time is over: see stay.h. */
#ifndef CORE_EXPIRE_H
#define CORE_EXPIRE_H

#include "daemon/core/parts.h"

/* Tells all of them of this lock that they have lost it; other readers keep it. The lock may be unused afterwards. */
void expire_fired(struct engine *e, struct lock *l);

#endif
