/* SPDX-License-Identifier: BSD-2-Clause */
/* The request ACQUIRE. */
#ifndef CORE_SEMAPHORES_H
#define CORE_SEMAPHORES_H

#include "daemon/core/session/commander.h"

void serve_ACQUIRE(struct commander *x, struct session *s);

#endif
