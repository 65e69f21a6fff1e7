/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests ACQUIRE and RELEASE; UNLOCK, EXTEND and CHECK, which are about a permit if they name one, or if the session has one of that name. */
#ifndef CORE_SEMAPHORES_H
#define CORE_SEMAPHORES_H

#include "daemon/core/heard.h"

void serve_ACQUIRE(struct commander *x, struct session *s);
void serve_RELEASE(struct commander *x, struct session *s);
void serve_UNLOCK(struct commander *x, struct session *s);
void serve_EXTEND(struct commander *x, struct session *s);
void serve_CHECK(struct commander *x, struct session *s);

#endif
