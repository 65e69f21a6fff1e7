/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection on its way to the next process: all that it is, but its descriptor, of which it knows the place in a list. */
#ifndef NET_CARRIED_H
#define NET_CARRIED_H

#include "daemon/base/fdlist.h"
#include "daemon/net/conn.h"

#define CARRIED_NO_FD SIZE_MAX

struct carried {
	uint64_t session; /* 0: it is closing */
	size_t place;     /* of the descriptor; CARRIED_NO_FD: it is closed, and only the sink is to be told so */
	char *rest, *out, *share; /* as in struct conn; NULL: none */
	size_t rest_n, out_n, share_n;
	unsigned char state, fate;
	bool is_unix, reading, skipping, ended, half_closed, mute, awaits, is_refused;
};

/* Memory of mem.h. The connection is freed, and its descriptor is in the list; a failed one is closed. */
void carried_pack(struct carried *to, struct conn *c, struct fdlist *fds);
/* The number of a session must be free. Frees what `from` points to. A session whose descriptor is not in the list is gone. */
void carried_unpack(struct carried *from, struct hub *h, struct fdlist *fds);

#endif
