/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A net continues in the next process: plain connections and listening sockets stay as they are. What clients send meanwhile waits in the kernel. TLS
 * connections end, because OpenSSL cannot hand them over.
 */
#ifndef NET_CARRY_H
#define NET_CARRY_H

#include "daemon/base/fdlist.h"
#include "daemon/net/net.h"

struct net_parcel;

/*
 * Nothing is accepted and no session is read. The sink gets no callback but gone, and only for sessions that a write or net_end_tls has ended. Output is still
 * written, and closing connections are closed. After the pause, everything that came meanwhile is reported, in its order. May be called from a callback.
 * Idempotent.
 */
void net_pause(struct net *n, bool on);

/*
 * Sends this line, its LF included, to each session inside TLS. The loop then calls gone(GONE_RESTART), also in a pause, and closes it as net_hangup does.
 * Handshakes end.
 */
void net_end_tls(struct net *n, const char *line);

void net_hangup_all(struct net *n); /* each session, as net_hangup */

/*
 * Only in a pause, not from a callback. Afterwards the net has no session and no listening socket, and no longer owns the descriptors in the list. No socket
 * file was unlinked. The sink hears nothing: it still has the sessions. Sessions inside TLS that net_end_tls has not ended are closed here. The next process
 * reports them as gone.
 */
struct net_parcel *net_pack(struct net *n, struct fdlist *fds);

/*
 * Takes everything in the parcel, and frees it. The net must have no session; it may be one that has just been packed. A pause of the net goes on. The sessions
 * keep their numbers, and `open` is not called. A session whose descriptor is not in the list is gone(GONE_RESTART). No limit ends a session. Descriptors are
 * close-on-exec from then on. Listening sockets do not accept yet: net_listen_… takes the one of its address, path or descriptor, instead of making another.
 * Then net_listen_no_more closes those that were not taken. net_listen_again lets all of them accept that are left, as before, and closes those that `may`
 * refuses (NULL: none): 0 or -errno.
 */
void net_parcel_free(struct net_parcel *p); /* closes nothing */
void net_unpack(struct net *n, struct net_parcel *parcel, struct fdlist *fds);
int net_listen_again(struct net *n, bool (*may)(void *context, int fd, bool tls), void *context) __attribute__((warn_unused_result));
void net_listen_no_more(struct net *n);

#endif
