/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Downstream: listeners and client connections. It moves lines and knows nothing of their meaning. Net numbers the sessions: the lowest free slot in the low 32
 * bits, a generation from 1 in the high ones. All callbacks but `writing` come on the loop's thread, never from inside a net_… call. They may call every
 * function but net_free. A line callback may hang up its own session; the bytes of the line stay valid until the callback returns.
 *
 * Each pass of the loop makes one recv(2) of at most 16 KiB per ready connection. net_flush makes one send(2) per connection. Large output is sent sooner. The
 * share of a connection in one pass ends after 8 lines, 4 KiB of answers, or when lines after the first take 100 us. Further lines wait for a turn. All that
 * wait share 100 us of each pass, peer by peer. Each pass accepts at most 8 connections per listening socket. When descriptors run out, accepting pauses and is
 * tried again. Not thread-safe; one event base.
 *
 * A connection inside TLS becomes a session after its handshake. For recv(2) and send(2) read its records, of at most 16 KiB each.
 *
 * An idle session takes 144 bytes: 128 for its record, the rest for its slot; OpenSSL takes some 15 KiB besides. Buffers exist only for an
 * unfinished line and unsent output.
 *
 * A client that does not read its answers must wait: while more than NET_OUTPUT_MARK bytes, or a quarter of output_max, are unsent, its lines are not passed
 * on. So answers alone never cause an overflow. Notices that the client did not request may.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include "daemon/net/net_types.h"

struct event_base;
struct ssl_ctx_st;
struct net;

/* NULL with errno. */
struct net *net_new(struct event_base *base, const struct net_conf *conf, const struct net_sink *sink);
void net_free(struct net *n);

/* 0 or -errno: -EADDRINUSE if another process listens there. A stale socket file is replaced. */
int net_listen_unix(struct net *n, const char *path);
/*
 * host: a numeric address, a name (all its addresses; resolving blocks, so only at start), NULL or "*" for every address. tls: see handshakes.h; without
 * net_set_tls its connections are closed. 0 or -errno.
 */
int net_listen_tcp(struct net *n, const char *host, uint16_t port, bool tls);
/* fd: a listening Unix or TCP socket passed by the service manager, else -EINVAL. Owned on success; the path of a Unix socket is never unlinked. */
int net_listen_fd(struct net *n, int fd, bool tls);
/* Makes socket files again that somebody has removed, and logs it. Only from the loop. */
void net_look(struct net *n);
/* The number of socket files that it could not make again. */
unsigned net_sockets_lost(const struct net *n);
void net_stop_listening(struct net *n); /* closes the listening sockets, ends handshakes, and unlinks a Unix socket that is still ours */

bool net_has_slot(const struct net *n, uint32_t slot); /* some session has it */
void net_send(struct net *n, uint64_t session, const void *bytes, size_t size); /* copies the bytes; ignored if the session is gone */
void net_hangup(struct net *n, uint64_t session); /* writes the unsent output, within 1 s, then closes; no callback follows */
void net_read(struct net *n, uint64_t session, bool on); /* lines that wait are delivered in order once reading resumes */
void net_await_sent(struct net *n, uint64_t session); /* asks for `sent` */
void net_flush(struct net *n); /* at the end of a loop pass: writes output for half a millisecond; the rest follows in the next passes, at once */
void net_flush_all(struct net *n); /* when no pass follows */

/* Takes ownership. New handshakes use it. Existing sessions and handshakes keep the former one. */
void net_set_tls(struct net *n, struct ssl_ctx_st *context);

/* Applies from now on; existing sessions stay. */
void net_set_limits(struct net *n, size_t output_max, unsigned sessions_max, unsigned connections_max, unsigned peer_max);

unsigned net_sessions(const struct net *n);
void net_sessions_by(const struct net *n, unsigned ret_sessions[NET_TRANSPORTS]); /* walks through all of them: for a scrape */
unsigned net_closing(const struct net *n); /* connections that are hung up and not closed yet; at most 1 s each */
void net_counts(const struct net *n, struct net_counts *ret_counts);

#endif
