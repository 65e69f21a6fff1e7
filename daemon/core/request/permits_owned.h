/* SPDX-License-Identifier: BSD-2-Clause */
/* RELEASE; and UNLOCK, EXTEND and CHECK, which are about a permit if the session has one of that name, else about a lock. */
#ifndef CORE_PERMITS_OWNED_H
#define CORE_PERMITS_OWNED_H

#include "daemon/core/semaphore/heard.h"

void serve_RELEASE(struct commander *x, struct session *s);
void serve_UNLOCK(struct commander *x, struct session *s);
void serve_EXTEND(struct commander *x, struct session *s);
void serve_CHECK(struct commander *x, struct session *s);

/* ERR QUORUM: the stores have not confirmed yet that it is held since the previous run. */
void tell_permit_adopting(struct commander *x, struct session *s);

#endif
