/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is at the other end of a client connection, and how a connection may end: said by net, judged by core. */
#ifndef BASE_PEER_H
#define BASE_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct peer {
	bool is_unix;
	bool is_local;    /* Unix socket or loopback: only this host's kernel can reset it */
	int64_t pid, uid; /* SO_PEERCRED; -1 on TCP */
	char address[64]; /* "10.0.0.5:51234", "[::1]:40000"; "unix" for a Unix socket */
};

enum gone {
	GONE_HANGUP,    /* EPOLLHUP on a Unix socket, or EOF after both sides closed: the other end is closed or dead */
	GONE_RESET,     /* RST or another socket error */
	GONE_KEEPALIVE, /* TCP keepalive or user timeout: nothing heard, the peer may be alive */
	GONE_OVERFLOW,  /* we hang up: it does not read what we send */
	GONE_N
};

#endif
