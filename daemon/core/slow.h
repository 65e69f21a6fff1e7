/* SPDX-License-Identifier: BSD-2-Clause */
/* The slow log: waits and holds of sessions that took longer than slow.wait and slow.hold say. calls.c tells those calls to stores that did. */
#ifndef CORE_SLOW_H
#define CORE_SLOW_H

#include "daemon/core/commander.h"

/* The request has waited since then, and is answered with that outcome. */
void slow_wait(struct commander *x, const struct session *s, struct span name, struct instant since, const char *outcome);
/* What was held since then is not any more. */
void slow_hold(struct commander *x, const struct session *s, struct span name, struct instant since, const char *outcome);

#endif
