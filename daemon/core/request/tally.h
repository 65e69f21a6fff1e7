/* SPDX-License-Identifier: BSD-2-Clause */
/* All figures, as samples: those of the service, and those of the daemon around it. */
#ifndef CORE_TALLY_H
#define CORE_TALLY_H

#include "daemon/core/event/sample.h"
#include "daemon/core/session/commander.h"

/* In the order of metric.def. It changes nothing. */
void tally(const struct commander *x, const struct sampler *to);

#endif
