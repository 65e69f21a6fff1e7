/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A claim comes to a name: its owner holds it already, or it joins those who read, is refused, or waits. Whether the stores are asked is decided here as well.
 */
#ifndef CORE_LOCK_REQUEST_H
#define CORE_LOCK_REQUEST_H

#include "daemon/core/round/engine_data.h"

/*
 * A claim asks for a name. Exactly one notice follows, now or later: GRANTED, REENTERED or REFUSED.
 * claim: session, texts, ttl, delay, renew, patient, asked_at are set; wait_until bounds a patient one.
 */
void lock_request_ask(struct engine *e, struct claim *c, struct span name, struct instant wait_until);

#endif
