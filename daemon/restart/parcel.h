/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parcel: descriptors that lie in the queue of a socket, so that one descriptor stands for all. Whoever has the socket may take them out, once; if the
 * socket is closed before, they are closed with it. A connection that lies there stays open, and what its peer sends waits.
 *
 * It is marked with the number of the hand-over that it belongs to. Not thread-safe.
 */
#ifndef PARCEL_H
#define PARCEL_H

#include "daemon/base/fdlist.h"

#include <stdint.h>

/* All descriptors of the list, which stay open. Returns the socket, or a negative errno: -EBADF if a place is empty; -EAGAIN, -ETOOMANYREFS: too many. */
int parcel_pack(const struct fdlist *list, const uint64_t mark[2]) __attribute__((warn_unused_result));

/*
 * Appends what lies in the parcel to the list, in order, and closes the socket. The descriptors are close-on-exec. 0; -EBADMSG: the parcel is damaged, or some
 * are missing because this process may have no more descriptors: then all are closed.
 */
int parcel_unpack(int socket, struct fdlist *list, uint64_t ret_mark[2]) __attribute__((warn_unused_result));

#endif
