/* SPDX-License-Identifier: BSD-2-Clause */
/* See loop.h. */
#include "daemon/redis/loop.h"
#include "daemon/base/instant.h"
#include "daemon/base/mem.h"
#include "tls/tls.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <sys/socket.h>
#include <unistd.h>

struct event *loop_timer(struct event_base *base, event_callback_fn on, void *context)
{
	struct event *timer = evtimer_new(base, on, context);

	if (!timer)
		mem_exhausted();
	return timer;
}

void loop_arm(struct event *timer, int64_t us)
{
	struct timeval tv = {.tv_sec = us / SEC, .tv_usec = us % SEC};

	if (evtimer_add(timer, &tv) < 0)
		mem_exhausted();
}

struct bufferevent *loop_socket(struct event_base *base, int family, struct ssl_ctx_st *const *tls, const char *name)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool secure = tls && *tls;
	struct ssl_st *ssl = fd >= 0 && secure ? tls_dial(*tls, -1, name) : NULL;
	struct bufferevent *bev = NULL;

	if (fd < 0)
		return NULL;
	if (secure && !ssl) { /* a name that no certificate can have */
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	if (ssl)
		bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
	else if (!secure)
		bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!bev)
		mem_exhausted();
	if (ssl)
		bufferevent_setfd(bev, fd);
	return bev;
}

void loop_send(struct bufferevent *bev, struct buf *out)
{
	if (bufferevent_write(bev, buf_begin(out), buf_length(out)) < 0)
		mem_exhausted();
	buf_release(out);
}

int loop_read(struct bufferevent *bev, struct resp *r, int (*on_reply)(void *context), void *context)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t n;
	int rc = 0;

	while (rc >= 0 && (n = evbuffer_get_contiguous_space(in))) {
		rc = resp_feed(r, evbuffer_pullup(in, (ssize_t)n), n);
		evbuffer_drain(in, n);
		while (rc >= 0 && (rc = resp_next(r)) == 1) {
			rc = on_reply(context);
			if (rc <= 0)
				return rc;
		}
	}
	return rc < 0 ? -1 : 0;
}

const char *loop_tls_reason(struct bufferevent *bev)
{
	struct ssl_st *tls = bufferevent_openssl_get_ssl(bev); /* NULL: none */

	return tls ? tls_end_reason(tls, bufferevent_get_openssl_error(bev)) : NULL;
}
