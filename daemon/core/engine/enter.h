/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A claim comes to a name: its owner holds it already, or it joins those who read, is refused, or waits. Whether the stores are asked is decided here as well.
 */
#ifndef CORE_ENTER_H
#define CORE_ENTER_H

#include "daemon/core/round/parts.h"

/*
 * A claim asks for a name. Exactly one notice follows, now or later: GRANTED, REENTERED or REFUSED.
 * claim: session, texts, ttl, delay, renew, patient, asked_at are set; wait_until bounds a patient one.
 */
void enter_ask(struct engine *e, struct claim *c, struct span name, struct instant wait_until);

#endif
