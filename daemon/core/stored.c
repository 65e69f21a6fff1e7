/* SPDX-License-Identifier: BSD-2-Clause */
/* See stored.h. */
#include "daemon/core/stored.h"

#include "daemon/base/netstring.h"
#include "daemon/core/tell.h"

#include <inttypes.h>

void stored_put_terms(const struct commander *x, const struct session *s, struct buf *words)
{
	int64_t all = (int64_t)x->core->conf.limits.stored;
	char peer[PEER_MAX];

	netstring_put(words, (struct span){peer, s ? session_origin(x->core, s, peer) : 0});
	netstring_put_int(words, all);
	netstring_put_int(words, s && !session_is_owner(x->core, s) ? all / 2 : 0);
}

void tell_stored_full(struct commander *x, struct session *s, struct span tag, struct span word)
{
	uint64_t all = x->core->conf.limits.stored;
	char peer[PEER_MAX];

	if (span_equal(word, SPAN("p")))
		tell_error(x, s, tag, ERROR_LIMIT,
		           "the jobs and rate limits of clients of %.*s may take at most %" PRIu64 " bytes at their store, half of limits.stored: "
		           "jobs that are done or dropped make room, and rate limits that are over",
		           (int)session_origin(x->core, s, peer), peer, all / 2);
	else
		tell_error(x, s, tag, ERROR_LIMIT,
		           "the jobs and rate limits of all clients may take at most %" PRIu64 " bytes at their store (limits.stored): "
		           "jobs that are done or dropped make room, and rate limits that are over",
		           all);
}
