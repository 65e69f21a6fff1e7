/* SPDX-License-Identifier: BSD-2-Clause */
/* RELEASE; and UNLOCK, EXTEND and CHECK, which are about a permit if the session has one of that name, else about a lock. */
#ifndef CORE_HELD_PERMITS_H
#define CORE_HELD_PERMITS_H

#include "daemon/core/semaphore/permit_resume.h"

void serve_RELEASE(struct request_context *x, struct session *s);
void serve_UNLOCK(struct request_context *x, struct session *s);
void serve_EXTEND(struct request_context *x, struct session *s);
void serve_CHECK(struct request_context *x, struct session *s);

/* ERR QUORUM: the stores have not confirmed yet that it is held since the previous run. */
void tell_permit_adopting(struct request_context *x, struct session *s);

#endif
