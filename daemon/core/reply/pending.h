/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that the stores are asked about, and that are answered later: `struct pending`. */
#ifndef CORE_PENDING_H
#define CORE_PENDING_H

#include "daemon/core/session/request_context.h"

/* Whether the session may have one more request at the stores; false: the request was refused. */
#define PENDINGS_MOST 1024 /* of a session, however large limits.waiting is: each keeps what it asks for … */
#define PENDING_BYTES 8192 /* … and one that keeps more than this counts once more for each so many bytes */
#define LISTS_MOST    256  /* likewise */
/* So many of one kind may be under way. */
static inline uint64_t under_way_most(const struct core *core, uint64_t most)
{
	return core->conf.limits.waiting < most ? core->conf.limits.waiting : most;
}
/* Whether its peer, and all together, may have one more; false: likewise. */
bool peer_within_limit(struct request_context *x, struct session *s);
bool pendings_within_limit(struct request_context *x, struct session *s);
/* Notes that the request being served asks the stores about this lock, and is answered later. */
struct pending *pending_of_request(struct request_context *x, struct session *s, struct lock *l);
/* Likewise, of a request that does not ask them yet, and has another bound: it does not count among those of its peer. */
struct pending *pending_uncounted(struct request_context *x, struct session *s, struct lock *l);

#endif
