/* SPDX-License-Identifier: BSD-2-Clause */
/* How an ACQUIRE is answered: the permit is its client's from now on, or is refused and is gone. */
#ifndef CORE_PERMIT_ANSWER_H
#define CORE_PERMIT_ANSWER_H

#include "daemon/core/semaphore/permit_resume.h"

/* It has the mark and a slot. */
void permit_win(struct request_context *x, struct permit *p);
void permit_refuse(struct request_context *x, struct permit *p, enum refusal why);

#endif
