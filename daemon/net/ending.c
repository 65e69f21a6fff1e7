/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection ends, and which callbacks it still makes then. */
#include "daemon/net/conn.h"
#include "daemon/net/sockets.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static short conn_poll(const struct conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

static int socket_error(int fd)
{
	int error = 0;
	socklen_t n = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) ? errno : error;
}

static enum gone conn_how_gone(const struct conn *c, short events, int error)
{
	/* POLLHUP counts more than the error: the peer has no descriptor left. */
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

void conn_want_telling(struct conn *c)
{
	if (c->is_ready && !conn_is_ending(c))
		return;
	if (c->is_ready)
		TAILQ_REMOVE(&c->hub->ready, c, link);
	c->is_ready = true;
	/* The sink gets an end before the waiting lines of other connections. */
	if (conn_is_ending(c))
		TAILQ_INSERT_HEAD(&c->hub->ready, c, link);
	else
		TAILQ_INSERT_TAIL(&c->hub->ready, c, link);
	event_active(c->hub->tell, EV_TIMEOUT, 1);
}

void conn_fail(struct conn *c, enum gone how)
{
	static const char *const why[GONE_N] = {"hangup", "reset", "keepalive", "overflow", "restart"};

	if (c->state >= CONN_FAILED)
		return;
	conn_set_state(c, CONN_FAILED, why[how]);
	c->fate = (unsigned char)how;
	conn_drop_output(c);
	conn_drop_input(c);
	sockets_forget(c);
	if (c->hub->current == c)
		c->hub->current = NULL;
	conn_want_telling(c);
}

void conn_dismiss(struct conn *c)
{
	if (c->state >= CONN_DISMISSED)
		return;
	conn_set_state(c, CONN_DISMISSED, "restart");
	if (c->hub->current == c)
		c->hub->current = NULL;
	conn_want_telling(c);
}

void conn_read_failed(struct conn *c, int error)
{
	conn_fail(c, conn_how_gone(c, conn_poll(c), error));
}

/* The peer is gone: drops output, but still passes on its earlier lines. False: lines are not taken, so the connection must end now. */
static bool conn_mute(struct conn *c)
{
	if (!c->is_unix || c->state != CONN_OPEN || !conn_takes_input(c))
		return false;
	c->mute = true;
	c->blocked = false;
	conn_drop_output(c);
	conn_arm(c);
	if (c->awaits)
		conn_want_telling(c);
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

void conn_end_here(struct conn *c, short events)
{
	conn_fail(c, conn_how_gone(c, events, socket_error(c->fd)));
	TAILQ_REMOVE(&c->hub->ready, c, link);
	c->is_ready = false;
	conn_told(c);
}

/* Whether there is input that was not passed on yet. */
static bool conn_has_lines(const struct conn *c)
{
	int unread = 0;

	return (c->rest && c->is_ready) || (!ioctl(c->fd, FIONREAD, &unread) && unread > 0);
}

/* Tells the sink once that the peer has half-closed. True: the sink has been called, and c may be freed. */
static bool conn_parts(struct conn *c)
{
	if (c->half_closed)
		return false;
	c->half_closed = true;
	conn_arm(c);
	if (c->state == CONN_OPEN)
		c->hub->sink.half_closed(c->hub->sink.context, c->session);
	return true;
}

bool conn_is_over(struct conn *c)
{
	short events = conn_poll(c);

	if (events & (POLLERR | POLLHUP | POLLNVAL)) {
		if ((events & POLLHUP) && conn_has_lines(c) && conn_mute(c))
			return conn_parts(c);
		conn_end_here(c, events);
		return true;
	}
	if (!(events & POLLRDHUP) || c->state != CONN_OPEN || conn_takes_input(c))
		return false;
	return conn_parts(c);
}
