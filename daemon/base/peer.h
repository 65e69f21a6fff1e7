/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer of a client connection, whose it is, and how a connection may end. Net fills these in; core decides by them. */
#ifndef BASE_PEER_H
#define BASE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer {
	bool is_unix;
	bool is_local;    /* Unix socket or loopback: only this host's kernel can reset the connection */
	bool is_admin;    /* may send admin requests */
	bool is_web;      /* asks for a client of the web page: such a session is in no figure and in no list */
	int64_t pid, uid; /* SO_PEERCRED; -1 on TCP */
	int64_t heartbeat_us; /* for a session without a heartbeat that it resumes; 0: none, as its connection shows its end */
	const char *subject; /* of the certificate that the peer has shown, as in "CN=db3"; NULL: none. Borrowed */
	const uint32_t *groups; /* all groups of a Unix peer, if rules ask for them; borrowed */
	unsigned groups_n;
	char address[64]; /* "10.0.0.5:51234", "[::1]:40000"; "unix" for a Unix socket */
};

enum gone {
	GONE_HANGUP,    /* POLLHUP on a Unix socket: the peer has closed its socket, or has died */
	GONE_RESET,     /* RST or another socket error */
	GONE_KEEPALIVE, /* TCP keepalive or user timeout: the peer is silent, but may be alive */
	GONE_OVERFLOW,  /* the daemon hangs up, because the peer does not read its output */
	GONE_RESTART,   /* the daemon restarts, and could not keep the connection; the client may be alive */
	GONE_N
};

#define PEER_ORIGIN_MAX 64

/*
 * The origin of a peer, as limits and back-offs count it: "uid 33", an IPv4 address, the /64 of an IPv6 address, as in "2001:db8::/64", or "loopback", which is
 * ::1 and all of 127.0.0.0/8: a host with one address of a /64, or of loopback, can use all of them. address: as in struct peer, of n bytes, not terminated.
 * Returns the length; out is not terminated.
 */
size_t peer_origin(bool is_unix, int64_t uid, const char *address, size_t n, char out[PEER_ORIGIN_MAX]);

#endif
