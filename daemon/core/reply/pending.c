/* SPDX-License-Identifier: BSD-2-Clause */
/* See pending.h. */
#include "daemon/core/reply/pending.h"

#include "daemon/core/reply/tell.h"

#include <inttypes.h>

bool peer_within_limit(struct request_context *x, struct session *s)
{
	uint64_t waiting = x->core->conf.limits.waiting;
	unsigned times = origin_asks_enough(s->origin, waiting);

	if (times == 0)
		return true;
	tell_error(x, s, x->request.tag, ERROR_LIMIT, "%s may have at most %" PRIu64 " requests in flight (%u times limits.waiting)",
	           times == CROWD_OF_ALL ? "all sessions together" : "the sessions of one peer", times * waiting, times);
	return false;
}

bool pendings_within_limit(struct request_context *x, struct session *s)
{
	uint64_t most = under_way_most(x->core, PENDINGS_MOST), n = 0;
	const struct pending *p;

	TAILQ_FOREACH(p, &s->pendings, in_session)
		n += 1 + p->bytes / PENDING_BYTES;
	if (n < most)
		return peer_within_limit(x, s);
	tell_error(x, s, x->request.tag, ERROR_LIMIT,
	           "a session may have at most %" PRIu64 " requests in flight at the stores (limits.waiting, and at most %d; 8 KiB count as one)",
	           most, PENDINGS_MOST);
	return false;
}

struct pending *pending_uncounted(struct request_context *x, struct session *s, struct lock *l)
{
	struct pending *p = pool_get(&x->engine->table.pendings);

	p->session = s;
	p->lock = l;
	p->verb = x->request.verb;
	request_keep_tag(&x->request, p->tag);
	TAILQ_INSERT_TAIL(&s->pendings, p, in_session);
	s->busy |= x->request.tag.n == 0;
	return p;
}

struct pending *pending_of_request(struct request_context *x, struct session *s, struct lock *l)
{
	struct pending *p = pending_uncounted(x, s, l);

	p->origin = s->origin;
	origin_asks(p->origin);
	return p;
}
