/* SPDX-License-Identifier: BSD-2-Clause */
/* HELP and STATS: they only look, and are answered at once. */
#ifndef CORE_QUERY_H
#define CORE_QUERY_H

#include "daemon/core/session/commander.h"

void serve_HELP(struct commander *x, struct session *s);
void serve_STATS(struct commander *x, struct session *s);

#endif
