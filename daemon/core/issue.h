/* SPDX-License-Identifier: BSD-2-Clause */
/* How an ACQUIRE is answered: the permit is its client's from now on, or is refused and is no more. */
#ifndef CORE_ISSUE_H
#define CORE_ISSUE_H

#include "daemon/core/heard.h"

/* It has the mark and enough slots. */
void permit_win(struct commander *x, struct permit *p);
/* What its claims say of its slots and its token. */
void permit_set_fence(struct permit *p);
void permit_refuse(struct commander *x, struct permit *p, enum refusal why);

#endif
