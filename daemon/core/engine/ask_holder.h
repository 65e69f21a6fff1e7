/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has a name: the question of SHOW to the stores. */
#ifndef CORE_ASK_HOLDER_H
#define CORE_ASK_HOLDER_H

#include "daemon/core/round/engine_data.h"

/* Asks the stores who has the name of the pending, and answers it. */
void ask_holder_begin(struct engine *e, struct pending *p);
void ask_holder_answered(struct engine *e, struct round *r, const struct answer *a);
void ask_holder_expired(struct engine *e, struct round *r);

#endif
