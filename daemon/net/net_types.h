/* SPDX-License-Identifier: BSD-2-Clause */
/* What net.h and the files below it share: limits, callbacks, counts. */
#ifndef NET_NET_TYPES_H
#define NET_NET_TYPES_H

#include "daemon/base/peer.h"
#include "daemon/net/listener.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Times output_max: the bound of all buffers together, unsent output and kept input. Beyond it, the largest connection of the peer that has most in sum ends
 * with gone(GONE_OVERFLOW).
 */
#define HELD_WHOLE 64
#define NET_OUTPUT_MARK ((size_t)256 * 1024)

struct net_conf {
	size_t line_max;     /* bytes of a line, LF included; a longer line is reported as too_long and dropped */
	size_t output_max;   /* unsent bytes of a connection; more end it with gone(GONE_OVERFLOW) */
	unsigned sessions_max; /* further connections get one line "ERR LIMIT clients=<max> …" and are closed; see shares.h */
	unsigned connections_max; /* descriptors for connections, closing ones included; bounds the sessions as well */
	unsigned peer_max;     /* sessions of one peer, 0: no bound; see shares.h */
	bool groups;           /* report the groups of Unix peers */
	int64_t admin_group;   /* number of the group whose members may send admin requests; -1: none */
	unsigned first_slot, reserved_slots; /* sessions have slots from first_slot on; new sessions come after the reserved ones */
	struct listener_access unix_access;
	int64_t keepalive_us;  /* TCP keepalive idle time, and TCP_USER_TIMEOUT */
};

struct net_sink {
	void *context;
	void (*open)(void *context, uint64_t session, const struct peer *peer);
	void (*line)(void *context, uint64_t session, char *line, size_t n); /* without LF or CRLF; the bytes may be overwritten */
	void (*too_long)(void *context, uint64_t session, char *beginning, size_t n); /* how the line begins; likewise */
	/* The peer has closed its side while its lines are not taken, or is gone. Lines may follow, then eof or gone. At most once. */
	void (*half_closed)(void *context, uint64_t session);
	void (*sent)(void *context, uint64_t session); /* once after net_await_sent: unsent output is below the mark */
	void (*eof)(void *context, uint64_t session); /* once, after all complete lines; an unfinished line is dropped */
	void (*gone)(void *context, uint64_t session, enum gone how); /* the last callback of this session; its slot is free */
	/* May be NULL. Called before bytes of a session are written, also from inside net_… calls. It must not call net_…. */
	void (*writing)(void *context);
};

enum net_transport { NET_UNIX, NET_TCP, NET_TLS, NET_TRANSPORTS };

/* Counters: accepted, refused over the limit, sessions that restarts have handed over, pauses for lack of descriptors, bytes in and out. */
struct net_counts {
	uint64_t accepted[NET_TRANSPORTS], refused, handed_over, pauses, bytes_in, bytes_out;
};

#endif
