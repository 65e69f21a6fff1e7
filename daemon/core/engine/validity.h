/* SPDX-License-Identifier: BSD-2-Clause */
/* Until when clients may rely on what they hold, and for how long a name is kept from others behind that. See ALGORITHMS.md, End of a hold. */
#ifndef CORE_VALIDITY_H
#define CORE_VALIDITY_H

#include "daemon/core/round/engine_data.h"

/* Until when the holder of a held lock may believe, if it is told nothing more and nothing is renewed. */
struct instant validity_of_lease(const struct engine *e, const struct lock *l);
/* The same for one of its holders, also of a lease that may yet be adopted. */
struct instant validity_of(const struct engine *e, const struct claim *c);
/*
 * For how long the key is to stay at the stores although the hold ends now and clients rely on it until `believed`: for the lock-delay, if nobody believes
 * any more. The mark of a semaphore stays as long as they believe: it keeps no permit of its limit out. 0: it is enough to leave the name alone as long as
 * they believe.
 */
int64_t validity_leave_us(const struct engine *e, const struct lock *l, struct instant believed);

#endif
