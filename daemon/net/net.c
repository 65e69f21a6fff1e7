/* SPDX-License-Identifier: BSD-2-Clause */
/* The front of this folder: finds the connection of a session and passes the call on. It must never call the sink itself. */
#include "daemon/net/net.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/net/acceptor.h"
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"
#include "daemon/net/handshakes.h"
#include "daemon/net/output.h"
#include "daemon/net/tcp_listeners.h"
#include "daemon/net/turns.h"
#include "tls/context.h"

#include <errno.h>
#include <stdlib.h>

#define FLUSH_US INT64_C(500)

struct net *net_new(struct event_base *base, const struct net_conf *conf, const struct net_sink *sink)
{
	struct net *n = mem_alloc(sizeof(*n));
	int r = hub_init(&n->hub, base, conf, sink);

	if (!r) {
		r = acceptor_init(&n->acceptor, &n->hub);
		if (!r)
			return n;
		hub_release(&n->hub);
	}
	free(n);
	errno = -r;
	return NULL;
}

void net_free(struct net *n)
{
	if (!n)
		return;
	acceptor_release(&n->acceptor);
	hub_release(&n->hub);
	free(n);
}

int net_listen_unix(struct net *n, const char *path)
{
	struct listener l;
	bool inherited_socket = inherited_take_unix(&n->acceptor.inherited, path, &l);
	int r = inherited_socket ? listener_allow(path, &n->hub.conf.unix_access) : listener_unix(path, &n->hub.conf.unix_access, &l);

	if (inherited_socket && r < 0)
		listener_release(&l);
	return r < 0 ? r : acceptor_add(&n->acceptor, &l, false);
}

int net_listen_tcp(struct net *n, const char *host, uint16_t port, bool tls)
{
	struct inherited *inherited = &n->acceptor.inherited;
	struct listener l[LISTENER_ADDRESSES_MAX];
	int i, count = tcp_listeners(host, port, n->hub.conf.keepalive_us, inherited, l), r;

	/* The previous process listened at another address with this port, as at every one of them. */
	if (count == -EADDRINUSE && inherited_drop_port(inherited, port))
		count = tcp_listeners(host, port, n->hub.conf.keepalive_us, inherited, l);
	r = count < 0 ? count : 0;
	for (i = 0; i < count; i++)
		if (r < 0)
			listener_release(&l[i]);
		else
			r = acceptor_add(&n->acceptor, &l[i], tls);
	return r;
}

void net_set_tls(struct net *n, struct ssl_ctx_st *context)
{
	tls_context_free(n->hub.handshakes.context);
	n->hub.handshakes.context = context;
}

int net_listen_fd(struct net *n, int fd, bool tls)
{
	struct listener l;
	int r = listener_fd(fd, n->hub.conf.keepalive_us, &l);

	if (r < 0)
		return r;
	inherited_drop_same(&n->acceptor.inherited, fd);
	return acceptor_add(&n->acceptor, &l, tls);
}

void net_look(struct net *n)
{
	if (!n->hub.paused && !n->acceptor.paused)
		acceptor_look(&n->acceptor);
}

unsigned net_sockets_lost(const struct net *n)
{
	return acceptor_sockets_lost(&n->acceptor);
}

void net_stop_listening(struct net *n)
{
	acceptor_stop(&n->acceptor);
	handshake_drop(&n->hub);
}

bool net_has_slot(const struct net *n, uint32_t slot)
{
	return slots_has(&n->hub.slots, slot);
}

void net_send(struct net *n, uint64_t session, const void *bytes, size_t size)
{
	struct conn *c = slots_find(&n->hub.slots, session);

	if (c && size)
		conn_send(c, bytes, size);
}

void net_hangup(struct net *n, uint64_t session)
{
	struct conn *c = slots_find(&n->hub.slots, session);

	if (c)
		closing_begin(c);
}

void net_read(struct net *n, uint64_t session, bool on)
{
	struct conn *c = slots_find(&n->hub.slots, session);

	if (c)
		conn_read(c, on);
}

void net_await_sent(struct net *n, uint64_t session)
{
	struct conn *c = slots_find(&n->hub.slots, session);

	if (c)
		conn_await_sent(c);
}

void net_flush(struct net *n)
{
	if (!TAILQ_EMPTY(&n->hub.dirty))
		hub_flush(&n->hub, instant_add(clock_boottime(), FLUSH_US));
	if (n->hub.wastes > 0)
		hub_give_back(&n->hub);
}

void net_flush_all(struct net *n)
{
	hub_flush(&n->hub, INSTANT_NEVER);
}

void net_set_limits(struct net *n, size_t output_max, unsigned sessions_max, unsigned connections_max, unsigned peer_max)
{
	n->hub.conf.output_max = output_max;
	n->hub.conf.sessions_max = sessions_max;
	n->hub.conf.connections_max = connections_max;
	n->hub.conf.peer_max = peer_max;
}

unsigned net_sessions(const struct net *n)
{
	return n->hub.slots.live;
}

void net_sessions_by(const struct net *n, unsigned ret_sessions[NET_TRANSPORTS])
{
	const struct conn *c;
	size_t at = 0;

	memset(ret_sessions, 0, NET_TRANSPORTS * sizeof(*ret_sessions));
	while ((c = slots_next(&n->hub.slots, &at)))
		ret_sessions[conn_transport(c)]++;
}

unsigned net_closing(const struct net *n)
{
	return n->hub.closing_n;
}

void net_counts(const struct net *n, struct net_counts *ret_counts)
{
	*ret_counts = n->hub.counts;
}
