/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parcel: descriptors in the queue of a socket, so that one descriptor contains all others. The owner of the socket may take them out, once. If the socket is
 * closed before, they are closed with it. A connection in a parcel stays open, and what its peer sends waits. It is marked with the number of its hand-over.
 * Not thread-safe.
 */
#ifndef PARCEL_H
#define PARCEL_H

#include "daemon/base/fdlist.h"

#include <stdint.h>

/* All descriptors of the list, which stay open. Returns the socket, or a negative errno: -EBADF if a place is empty; -EAGAIN, -ETOOMANYREFS: too many. */
int parcel_pack(const struct fdlist *list, const uint64_t mark[2]) __attribute__((warn_unused_result));

/*
 * Appends the descriptors in the parcel to the list, in order, and closes the socket. They are close-on-exec. 0; -EBADMSG: the parcel is damaged, or some are
 * missing because this process may have no more descriptors: then all are closed.
 */
int parcel_unpack(int socket, struct fdlist *list, uint64_t ret_mark[2]) __attribute__((warn_unused_result));

#endif
