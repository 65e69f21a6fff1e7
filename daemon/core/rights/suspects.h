/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has shown wrong secrets: an origin (peer.h) together with the user that it has named, so that nobody is delayed by what others on his address fail
 * with. A suspect is forgiven when it has not failed for SUSPECT_FORGIVEN. SUSPECTS_MOST are remembered, those that failed last; of one origin SUSPECTS_OF_ONE,
 * so that it does not make the daemon forget those of all others. An origin that names more users escapes the delay, and not its turn: each costs a
 * verification (auth.h). To delay all of its users would let anybody on an address (of a NAT, of this host) keep all others there out.
 */
#ifndef CORE_SUSPECTS_H
#define CORE_SUSPECTS_H

#include "daemon/base/instant.h"
#include "daemon/base/map.h"
#include "proto/span.h"

#include <sys/queue.h>

#define SUSPECTS_MOST     1000
#define SUSPECTS_OF_ONE   250
#define SUSPECT_FORGIVEN  (10 * 60 * SEC)
#define SUSPECT_USER_MOST 128 /* bytes of a user's name by which suspects are told apart */

struct suspects {
	struct map by_name, origins;
	TAILQ_HEAD(, suspect) all; /* the one whose last failure is the oldest, first */
};

void suspects_init(struct suspects *a, const uint64_t key[2]);
void suspects_release(struct suspects *a);
void suspect_failed(struct suspects *a, struct span origin, struct span user, struct instant now);
/* How often it has failed in a row; 0: it has not, or is forgiven. */
unsigned suspect_failures(struct suspects *a, struct span origin, struct span user, struct instant now);

#endif
