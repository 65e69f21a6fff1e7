/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows a round that was not won. */
#ifndef CORE_RETRY_H
#define CORE_RETRY_H

#include "daemon/core/parts.h"
#include "daemon/core/round.h"

/* Releases what the round placed. Then the name waits, asks again, or asks for nothing any more. */
void retry_after(struct engine *e, struct round *r, enum round_outcome why);

#endif
