/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has a name: the question of SHOW to the stores. */
#ifndef CORE_LOOK_H
#define CORE_LOOK_H

#include "daemon/core/round/parts.h"

/* Asks the stores who has the name of the pending, and answers it. */
void look_begin(struct engine *e, struct pending *p);
void look_answered(struct engine *e, struct round *r, const struct answer *a);
void look_expired(struct engine *e, struct round *r);

#endif
