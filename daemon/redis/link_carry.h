/* SPDX-License-Identifier: BSD-2-Clause */
/* A link goes on in the next process. Not thread-safe. */
#ifndef REDIS_LINK_CARRY_H
#define REDIS_LINK_CARRY_H

#include "daemon/base/fdlist.h"
#include "daemon/redis/link.h"
#include "daemon/redis/parcel.h"

bool link_is_quiet(const struct link *l); /* no call is unanswered, collected or half sent; a PING may be unanswered */
bool link_is_plain(const struct link *l);

/* Of a link that is ready, quiet and plain. It is closed then, and its socket is in fds. */
void link_pack(struct link *l, struct link_parcel *p, struct fdlist *fds);
/* Of a closed link, which is ready then and owns fd. reload: it loads the scripts before it sends a call. */
void link_unpack(struct link *l, const struct link_parcel *p, int fd, bool reload);

#endif
