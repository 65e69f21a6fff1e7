/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are being closed. The sink does not hear of them any more, so an error just frees them. One timer serves all of them: each has CLOSING_US,
 * so they expire in the order in which they began to close.
 */
#include "daemon/net/closing.h"

#include "daemon/base/clock.h"
#include "daemon/net/conn_state.h"
#include "daemon/net/ending.h"
#include "daemon/net/held.h"
#include "daemon/net/secure.h"
#include "tls/tls.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRASH ((size_t)16384) /* bytes dropped per read */

static void deadline_set(struct hub *h, int64_t us)
{
	const struct timeval t = {.tv_sec = us / SEC, .tv_usec = us % SEC};

	evtimer_add(h->deadline, &t);
}

void closing_enter(struct conn *c, const char *why)
{
	struct hub *h = c->hub;

	conn_set_state(c, CONN_CLOSING, why);
	c->deadline = instant_add(clock_boottime(), CLOSING_US);
	if (TAILQ_EMPTY(&h->closing))
		deadline_set(h, CLOSING_US);
	TAILQ_INSERT_TAIL(&h->closing, c, link);
	h->closing_n++;
	h->refused_n += c->is_refused;
}

void closing_begin(struct conn *c)
{
	struct hub *h = c->hub;

	if (h->current == c)
		h->current = NULL;
	if (c->state == CONN_FAILED) {
		conn_free(c);
		return;
	}
	if (h->closing_n >= h->conf.sessions_max)
		closing_evict(h);
	conn_leave_turns(c);
	closing_enter(c, "hung-up");
	conn_end_session(c);
	conn_drop_input(c);
	conn_mark_dirty(c);
	conn_arm(c);
}

void closing_resume(struct conn *c, enum conn_state state)
{
	closing_enter(c, "resumed");
	if (state == CONN_LINGERING)
		conn_set_state(c, CONN_LINGERING, "resumed");
	conn_arm(c);
}

/* --- events -------------------------------------------------------------------------------------------------------- */

bool closing_drop_input(struct conn *c)
{
	char trash[TRASH];
	ssize_t n = recv(c->fd, trash, sizeof(trash), MSG_DONTWAIT);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	/* While output is left, EOF is no end: the next write shows whether the peer still reads. */
	if (n < 0 || c->state == CONN_LINGERING) {
		conn_free(c);
		return false;
	}
	c->ended = true;
	conn_arm(c);
	return true;
}

void closing_flushed(struct conn *c)
{
	secure_goodbye(c);
	shutdown(c->fd, SHUT_WR);
	if (c->ended) {
		conn_free(c);
		return;
	}
	conn_set_state(c, CONN_LINGERING, "flushed");
	conn_arm(c);
}

/* Shuts our side and drops unread input: close(2) with unread input sends a reset. A peer that sends more than we drop gets that reset. */
static void closing_shut(int fd)
{
	char trash[TRASH];

	shutdown(fd, SHUT_WR);
	(void)!recv(fd, trash, sizeof(trash), MSG_DONTWAIT);
}

void closing_send(int fd, struct ssl_st *tls, const char *line, size_t n)
{
	ssize_t sent = tls ? tls_send(tls, line, n) : send(fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (tls)
		tls_end(tls);
	tls_free(tls);
	/* If the socket does not take the line at once, it is closed without it. */
	if (sent == (ssize_t)n)
		closing_shut(fd);
	close(fd);
}

void closing_finish(struct conn *c)
{
	if (c->state == CONN_CLOSING && !c->blocked)
		(void)conn_write(c);
	secure_goodbye(c);
	closing_shut(c->fd);
	conn_free(c);
}

bool closing_evict(struct hub *h)
{
	struct conn *c = TAILQ_FIRST(&h->closing);

	if (!c)
		return false;
	closing_finish(c);
	return true;
}

void closing_expire(struct hub *h)
{
	struct instant now = clock_boottime();
	struct conn *c;

	for (unsigned n = 0; (c = TAILQ_FIRST(&h->closing)) && n < CLOSING_AT_ONCE && !instant_before(now, c->deadline); n++)
		closing_finish(c);
	if (c)
		deadline_set(h, instant_before(now, c->deadline) ? instant_diff(c->deadline, now) : 0);
}
