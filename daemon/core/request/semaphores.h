/* SPDX-License-Identifier: BSD-2-Clause */
/* The request ACQUIRE. */
#ifndef CORE_SEMAPHORES_H
#define CORE_SEMAPHORES_H

#include "daemon/core/session/request_context.h"

void serve_ACQUIRE(struct request_context *x, struct session *s);

#endif
