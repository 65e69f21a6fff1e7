/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has shown wrong secrets: an origin (peer.h) together with the user that it has named, so that nobody is delayed by what others on his address fail
 * with. A suspect is forgiven when it has not failed for SUSPECT_FORGIVEN. SUSPECTS_MOST are remembered, those that failed last; of one origin SUSPECTS_OF_ONE,
 * so that it does not make the daemon forget those of all others. An origin with so many counts as one whose every user has failed often: else it would
 * escape the delay by naming more users than are remembered.
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

struct suspect {
	struct map_node by_name;
	TAILQ_ENTRY(suspect) in_all;
	unsigned refs;   /* its AUTHs: it is not forgotten meanwhile */
	unsigned failed; /* in a row */
	struct instant failed_at;
	size_t n;
	char name[]; /* the origin, NUL, the user */
};

struct suspects {
	struct map by_name;
	TAILQ_HEAD(, suspect) all; /* the one whose last failure is the oldest, first */
};

void suspects_init(struct suspects *a, const uint64_t key[2]);
void suspects_release(struct suspects *a);
struct suspect *suspects_find_or_add(struct suspects *a, struct span origin, struct span user, struct instant now);
void suspect_failed(struct suspects *a, struct suspect *s, struct instant now);
void suspect_leave(struct suspects *a, struct suspect *s); /* one of its AUTHs is over */
/* How often it counts as having failed. */
unsigned suspect_failures(const struct suspects *a, const struct suspect *s, struct instant now);

static inline bool suspect_is_forgiven(const struct suspect *s, struct instant now)
{
	return s->failed == 0 || instant_diff(now, s->failed_at) >= SUSPECT_FORGIVEN;
}

#endif
