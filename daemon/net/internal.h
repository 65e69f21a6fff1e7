/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the front of this folder: what net.c and carry.c share. */
#ifndef NET_INTERNAL_H
#define NET_INTERNAL_H

#include "daemon/net/acceptor.h"
#include "daemon/net/hub.h"

struct net {
	struct hub hub;
	struct acceptor acceptor;
};

#endif
