/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections and listening sockets on their way to the next process: all of their state. Descriptors are places in a list. */
#ifndef NET_CARRIED_H
#define NET_CARRIED_H

#include "daemon/net/conn.h"

#include <sys/types.h>

#define CARRIED_NO_FD SIZE_MAX

struct carried_conn {
	uint64_t session; /* 0: it is closing */
	size_t place;     /* of the descriptor; CARRIED_NO_FD: it is closed, and only the sink must still hear of it */
	char *rest, *out, *share; /* as in struct conn; NULL: none */
	size_t rest_n, out_n, share_n;
	unsigned char state, fate;
	bool is_unix, reading, skipping, ended, half_closed, mute, awaits, is_refused;
};

/* One listening socket: as struct listener, but its descriptor. */
struct carried_listener {
	size_t place;
	char *path;
	dev_t device;
	ino_t inode;
	bool tls;
};

struct net_parcel {
	struct carried_conn *conn; /* closing ones last, oldest first */
	size_t conns;
	struct carried_listener *listener;
	size_t listeners;
};

#endif
