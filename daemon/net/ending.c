/* SPDX-License-Identifier: BSD-2-Clause */
/* See ending.h. */
#include "daemon/net/ending.h"

#include "daemon/net/conn_state.h"
#include "daemon/net/held.h"
#include "daemon/net/secure.h"
#include "daemon/net/sockets.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

short conn_poll(const struct conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

enum gone conn_how_gone(const struct conn *c, short events, int error)
{
	/* POLLHUP outweighs the error: the peer has closed its last descriptor. */
	if (c->is_unix && (events & POLLHUP))
		return GONE_HANGUP;
	switch (error) {
	case ETIMEDOUT:
	case EHOSTUNREACH: /* tcp(7): the kernel reports a timeout as the last soft error, if there was one */
	case ENETUNREACH:
	case EHOSTDOWN:
		return GONE_KEEPALIVE;
	default:
		return GONE_RESET;
	}
}

static void closing_leave(struct conn *c)
{
	struct hub *h = c->hub;

	TAILQ_REMOVE(&h->closing, c, link);
	h->closing_n--;
	h->refused_n -= c->is_refused;
}

void conn_end_session(struct conn *c)
{
	slots_give(&c->hub->slots, c->session);
	conn_leave_share(c);
	c->session = 0;
}

void conn_free(struct conn *c)
{
	struct hub *h = c->hub;

	assert(h->current != c);
	conn_leave_turns(c);
	if (c->session)
		conn_end_session(c);
	sockets_forget(c);
	if (c->is_dirty)
		TAILQ_REMOVE(&h->dirty, c, dirty);
	if (c->state >= CONN_CLOSING)
		closing_leave(c);
	conn_drop_input(c);
	conn_drop_output(c);
	if (c->fd >= 0)
		close(c->fd);
	secure_conn_free(c);
}

void conn_read_failed(struct conn *c, int error)
{
	conn_fail(c, conn_how_gone(c, conn_poll(c), error));
}

bool conn_mute(struct conn *c)
{
	if (!c->is_unix || c->state != CONN_OPEN || !conn_takes_input(c))
		return false;
	c->mute = true;
	c->blocked = false;
	conn_drop_output(c);
	conn_arm(c);
	if (c->awaits)
		conn_want_turn(c);
	return true;
}

void conn_broken(struct conn *c, int error)
{
	short events;

	if (!c->session) {
		conn_free(c);
		return;
	}
	events = conn_poll(c);
	if (!(events & POLLHUP) || !conn_mute(c))
		conn_fail(c, conn_how_gone(c, events, error));
}
