/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows a round that was not won, and what lets a name that waits be asked for sooner. */
#ifndef CORE_RETRY_H
#define CORE_RETRY_H

#include "daemon/core/round/engine_data.h"
#include "daemon/core/round/round.h"

/* Releases what the round placed. Then the name waits, asks again, or asks for nothing any more. */
void retry_after(struct engine *e, struct round *r, enum round_outcome why);

/* A store published that the name was freed. Such a message may be lost, repeated or late. */
void retry_woken(struct engine *e, struct span name, unsigned node);
bool retry_quorum_back(struct engine *e); /* enough usable stores again: asks for names in CONTENDER_NO_QUORUM. False: there are more */

#endif
