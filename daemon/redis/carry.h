/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A restart that the servers do not notice: one process packs its connections, and the next goes on with them, without handshake, `up` or `down`. What a server
 * publishes meanwhile waits in the socket. A connection that broke meanwhile shows in the loop, as any other.
 *
 * These connections are closed and opened anew, and for a node that was up the sink hears `down` from the loop of the next process, then `up`: those inside
 * TLS, those whose settings differ (settings.h), and those whose descriptors were not handed over. The others are opened anew without a word: links of
 * nodes that are not up, a subscriber that was not subscribed yet, connections to sentinels.
 *
 * Scripts that the next process has in another version are loaded over the connections that there are, before the first call.
 * Not thread-safe, and never from inside the sink.
 */
#ifndef REDIS_CARRY_H
#define REDIS_CARRY_H

#include "daemon/base/fdlist.h"
#include "daemon/redis/upstream.h"

struct upstream_parcel;

/* Whether no call is unanswered, collected or half sent. The calls to nodes that are down are answered by the loop as well. */
bool upstream_is_quiet(const struct upstream *u);

/*
 * For when it does not get quiet in time: a node with an unanswered call breaks as when a link breaks, so the sink hears the answers and `down`, here and now.
 * The sink makes no calls meanwhile. Then it is quiet.
 */
void upstream_give_up(struct upstream *u);

/*
 * Only if it is quiet. The parcel is memory of mem_use, and stays the caller's. The descriptors in fds belong to no upstream any more; only upstream_free may
 * follow, before the loop runs again.
 */
struct upstream_parcel *upstream_pack(struct upstream *u, struct fdlist *fds);

/* Of what upstream_new made, before its loop runs. Frees the parcel. Takes all descriptors of the parcel out of fds, and closes those that it does not need. */
void upstream_unpack(struct upstream *u, struct upstream_parcel *p, struct fdlist *fds);

#endif
