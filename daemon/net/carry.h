/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A net goes on in the next process: the plain connections and the listening sockets stay as they are. What their clients say meanwhile waits in the kernel.
 * TLS connections end, because OpenSSL cannot hand them over.
 */
#ifndef NET_CARRY_H
#define NET_CARRY_H

#include "daemon/base/fdlist.h"
#include "daemon/net/net.h"

struct net_parcel;

/*
 * Nothing is accepted and no session is read; the sink is told nothing but gone, and that only of sessions that a write or net_end_tls has ended. Output goes
 * out, and closing connections are closed. After the pause all is told that came meanwhile, in its order. May be called from a callback. Idempotent.
 */
void net_pause(struct net *n, bool on);

/*
 * Each session inside TLS is sent this line, its LF included, and the loop tells gone(GONE_RESTART), also in a pause; then it is closed as net_hangup does.
 * Handshakes end.
 */
void net_end_tls(struct net *n, const char *line);

void net_hangup_all(struct net *n); /* each session, as net_hangup */

/*
 * Only in a pause, not from a callback. Afterwards the net has no session,
 * listens nowhere, and the descriptors in the list are not its own any more; nothing was unlinked. The sink is told nothing: it knows the sessions as before.
 * Sessions inside TLS that net_end_tls has not ended are closed here, and told to be gone there.
 */
struct net_parcel *net_pack(struct net *n, struct fdlist *fds);

/*
 * Takes all that is in the parcel, and frees it. The net must have no session; it may be one that has just been packed. It may be in a pause, which then goes
 * on. The sessions have their numbers, and the sink is not told `open`. A session whose descriptor is not in the list is gone(GONE_RESTART). No limit ends a
 * session. Descriptors are close-on-exec from then on.
 *
 * Listening sockets do not accept yet: net_listen_… takes the one that stands for its address, path or descriptor, instead of making another. Then
 * net_listen_no_more closes those that nobody asked for. net_listen_again lets all of them accept that are left, as they did, and
 * closes those of which `may` says no (NULL: none): 0 or -errno.
 */
void net_parcel_free(struct net_parcel *p); /* closes nothing */
void net_unpack(struct net *n, struct net_parcel *parcel, struct fdlist *fds);
int net_listen_again(struct net *n, bool (*may)(void *context, int fd, bool tls), void *context) __attribute__((warn_unused_result));
void net_listen_no_more(struct net *n);

#endif
