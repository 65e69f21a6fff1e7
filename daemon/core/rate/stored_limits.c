/* SPDX-License-Identifier: BSD-2-Clause */
/* See stored_limits.h. */
#include "daemon/core/rate/stored_limits.h"

#include "daemon/base/netstring.h"
#include "daemon/core/reply/tell.h"

#include <inttypes.h>

void stored_put_terms(const struct request_context *x, const struct session *s, struct buf *words)
{
	int64_t all = (int64_t)x->core->conf.limits.stored;
	char peer[PEER_MAX];

	netstring_put(words, (struct span){peer, session_origin(x->core, s, peer)});
	netstring_put_int(words, all);
	netstring_put_int(words, session_is_owner(x->core, s) ? 0 : all / 2);
}

void tell_stored_full(struct request_context *x, struct session *s, struct span tag, struct span word)
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

static bool names_refuse(struct request_context *x, struct session *s, const char *whose, const char *what, uint64_t most, const char *advice)
{
	tell_error(x, s, x->request.tag, ERROR_LIMIT, "the names that %s %s may take at most %" PRIu64 " bytes at a store (limits.stored): %s",
	           whose, what, most, advice);
	return false;
}

bool kept_has_room(struct request_context *x, struct session *s, uint64_t bytes)
{
	static const char what[] = "keep or have left with a delay", advice[] = "ask without keep= or delay=, or later";
	struct kept_names *k = &x->engine->kept;
	uint64_t most = x->core->conf.limits.stored;

	if (most == 0)
		return true;
	if (!session_is_owner(x->core, s) && kept_bytes_count(kept_of_peer(k, s->origin), x->core->now) + bytes > most / NAMES_SHARE)
		return names_refuse(x, s, "clients of one peer", what, most / NAMES_SHARE, advice);
	return kept_bytes_count(&k->all, x->core->now) + bytes <= most || names_refuse(x, s, "all clients", what, most, advice);
}

bool names_have_room(struct request_context *x, struct session *s, uint64_t bytes, bool leaves)
{
	static const char what[] = "hold or wait for", advice[] = "UNLOCK some";
	uint64_t most = x->core->conf.limits.stored;

	if (most == 0)
		return true;
	if (!session_is_owner(x->core, s) && s->origin->names + bytes > most / NAMES_SHARE)
		return names_refuse(x, s, "clients of one peer", what, most / NAMES_SHARE, advice);
	if (x->sessions->origins.names + bytes > most)
		return names_refuse(x, s, "all clients", what, most, advice);
	return !leaves || kept_has_room(x, s, bytes);
}

bool crowd_has_room(struct request_context *x, struct session *s)
{
	if (!origin_is_crowded(s->origin, x->core->conf.limits.waiting))
		return true;
	tell_crowded(x, s, x->request.tag);
	return false;
}
