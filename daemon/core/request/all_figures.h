/* SPDX-License-Identifier: BSD-2-Clause */
/* All figures, as samples: those of the service, and those of the daemon around it. */
#ifndef CORE_ALL_FIGURES_H
#define CORE_ALL_FIGURES_H

#include "daemon/core/event/sample.h"
#include "daemon/core/session/request_context.h"

/* In the order of metric.def. It changes nothing. */
void tally(const struct request_context *x, const struct sampler *to);

#endif
