/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Downstream: listeners and client connections. It moves lines and knows nothing of their meaning. Sessions are numbered here (slot in the low
 * 32 bits, the lowest free one; generation in the high ones, from 1). All callbacks but `writing` come on the loop's thread and never from inside a net_… call;
 * they may call any of these but net_free. net_hangup of the session whose line is being told is fine, the line's bytes stay until the callback returns.
 *
 * Reading is one read(2) of at most 16 KiB per ready connection and loop pass, writing one send(2) per connection and net_flush, or sooner when
 * much is unsent. A connection has 8 lines of a pass, or 4 KiB of answers; what it said beyond is told when its turn comes again, and those with
 * such a rest share 50 us of each pass. Accepting takes 8 connections of a pass, pauses without spinning when descriptors run out, and goes on when
 * there are some. Not thread-safe; one event base.
 *
 * A silent session costs 320 bytes: 224 its record, the rest its slot and libevent's share. Buffers exist only while something is in them: an
 * unfinished line, unsent output.
 *
 * Who asks faster than it reads is asked to wait: while more than NET_OUTPUT_MARK bytes, or a quarter of output_max, are unsent, no further line of
 * that connection is told and none is read. So answers alone make no overflow; what is sent unasked does.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include "daemon/base/peer.h"
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct net;

#define NET_OUTPUT_MARK ((size_t)256 * 1024)

struct net_conf {
	size_t line_max;     /* bytes of a line, LF included; a longer one is drained and told as too_long */
	size_t output_max;   /* unsent bytes of a connection; beyond: gone(GONE_OVERFLOW) */
	unsigned sessions_max; /* at least 1; further connections get one line "ERR LIMIT clients=<max> …" and are closed */
	int64_t keepalive_us;  /* TCP keepalive idle time; TCP_USER_TIMEOUT is the same */
};

struct net_sink {
	void *context;
	void (*open)(void *context, uint64_t session, const struct peer *peer);
	void (*line)(void *context, uint64_t session, char *line, size_t n); /* without LF or CRLF; the bytes may be overwritten */
	void (*too_long)(void *context, uint64_t session);
	/* The other end has closed its side while it is not read, or is gone: lines may still come, then eof or gone. Once; told only in these cases. */
	void (*parting)(void *context, uint64_t session);
	void (*sent)(void *context, uint64_t session); /* after net_await_sent, once: no more is unsent than the mark */
	void (*eof)(void *context, uint64_t session); /* once; every complete line before it was told; an unfinished one is dropped */
	void (*gone)(void *context, uint64_t session, enum gone how); /* last word about this session; its slot is free */
	/* NULL: none. Bytes of a session go out now: what must come before them does so in here. It may not call net_…, and comes inside such calls. */
	void (*writing)(void *context);
};

/* NULL with errno: ENOTSUP when the base does not run on epoll (EVENT_NOEPOLL in the environment …), ENOMEM. */
struct net *net_new(struct event_base *base, const struct net_conf *conf, const struct net_sink *sink);
void net_free(struct net *n);

/* 0 or -errno. A path that another live process listens on is -EADDRINUSE, a stale one is replaced. Mode 0666. */
int net_listen_unix(struct net *n, const char *path);
/* host: a numeric address, a name (resolved here and now, so only at start; each of its addresses), NULL or "*" for every address. */
int net_listen_tcp(struct net *n, const char *host, uint16_t port);
/* A listening descriptor that somebody passed (systemd); Unix or TCP, else -EINVAL. Taken on success; a Unix path is then not unlinked. */
int net_listen_fd(struct net *n, int fd);
void net_stop_listening(struct net *n); /* closes them, and unlinks a Unix socket that is still ours */

void net_send(struct net *n, uint64_t session, const void *bytes, size_t size); /* copied; of a session that is gone: ignored */
void net_hangup(struct net *n, uint64_t session); /* after what was sent has gone out, at most 1 s; no callback follows */
void net_read(struct net *n, uint64_t session, bool on); /* lines that were already split are told first come first when on again */
void net_await_sent(struct net *n, uint64_t session); /* asks for `sent` */
void net_flush(struct net *n); /* end of a loop pass */

/* From now on; sessions that are there stay. */
void net_set_limits(struct net *n, size_t output_max, unsigned sessions_max);

unsigned net_sessions(const struct net *n);
unsigned net_closing(const struct net *n); /* hung up, but still sending what was sent or waiting for the other end; no longer than 1 s each */
/* Counters for STATS: accepted, refused over the limit, pauses for want of descriptors, bytes in and out. */
struct net_counts {
	uint64_t accepted, refused, pauses, bytes_in, bytes_out;
};
void net_counts(const struct net *n, struct net_counts *ret_counts);

#endif
