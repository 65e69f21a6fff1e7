/* SPDX-License-Identifier: BSD-2-Clause */
/* HELP and STATS: they only look, and are answered at once. */
#ifndef CORE_HELP_STATS_H
#define CORE_HELP_STATS_H

#include "daemon/core/session/request_context.h"

void serve_HELP(struct request_context *x, struct session *s);
void serve_STATS(struct request_context *x, struct session *s);

#endif
