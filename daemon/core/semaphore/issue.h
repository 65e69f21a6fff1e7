/* SPDX-License-Identifier: BSD-2-Clause */
/* How an ACQUIRE is answered: the permit is its client's from now on, or is refused and is no more. */
#ifndef CORE_ISSUE_H
#define CORE_ISSUE_H

#include "daemon/core/semaphore/heard.h"

/* It has the mark and a slot. */
void permit_win(struct commander *x, struct permit *p);
void permit_refuse(struct commander *x, struct permit *p, enum refusal why);

#endif
