/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections inside TLS. One read passes on one record, and one write turns as much as it can into records. A connection that ends without close_notify counts
 * as reset: somebody on the way may have cut it while the client lives.
 */
#include "daemon/net/secure.h"

#include "daemon/net/conn_state.h"
#include "daemon/net/held.h"
#include "tls/tls.h"

_Static_assert(HUB_READ >= TLS_RECORD, "a read has room for a record, so nothing is left where epoll does not see it");

static struct secure_conn *secure_of(struct conn *c)
{
	return (struct secure_conn *)c;
}

struct conn *secure_conn_new(struct hub *h, int fd, struct ssl_st *tls)
{
	struct conn *c = pool_get(tls ? &h->secure_conns : &h->conns);

	c->hub = h;
	c->fd = fd;
	c->is_tls = tls != NULL;
	if (tls)
		secure_of(c)->tls = tls;
	return c;
}

void secure_conn_free(struct conn *c)
{
	if (c->is_tls)
		tls_free(secure_of(c)->tls);
	pool_put(c->is_tls ? &c->hub->secure_conns : &c->hub->conns, c);
}

void secure_goodbye(struct conn *c)
{
	if (c->is_tls)
		tls_end(secure_of(c)->tls);
}

ssize_t secure_recv(struct conn *c, void *bytes, size_t size)
{
	ssize_t n = tls_recv(secure_of(c)->tls, bytes, size);

	if (n >= 0 || errno != EBUSY)
		return n;
	/* TLS must send an answer first. Until then the input would be reported again and again. */
	c->stuck = true;
	conn_arm(c);
	errno = EAGAIN;
	return -1;
}

ssize_t secure_send(struct conn *c, const void *bytes, size_t size)
{
	return tls_send(secure_of(c)->tls, bytes, size);
}

int conn_write(struct conn *c)
{
	size_t n = c->out ? buf_length(c->out) : 0;
	ssize_t sent;

	if (!n)
		return 0;
	if (c->hub->sink.writing)
		c->hub->sink.writing(c->hub->sink.context);
	do
		sent = conn_put(c, buf_begin(c->out), n);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN ? 1 : -errno;
	c->hub->counts.bytes_out += (uint64_t)sent;
	buf_consume(c->out, (size_t)sent);
	if ((size_t)sent < n)
		return 1;
	conn_drop_output(c);
	return 0;
}
