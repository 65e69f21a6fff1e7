/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection from accept(2) to close(2): one recv(2) per readiness, one send(2) per flush, and no buffer but for an unfinished line or unsent output. It must
 * never call the sink from inside a call of the owner. It must never touch a connection that a callback may have freed: after each callback hub.current shows
 * whether the connection still exists.
 */
#include "daemon/net/conn.h"

#include "daemon/base/clock.h"
#include "daemon/net/closing.h"
#include "daemon/net/conn_state.h"
#include "daemon/net/ending.h"
#include "daemon/net/held.h"
#include "daemon/net/lines.h"
#include "daemon/net/output.h"
#include "daemon/net/secure.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define SHARE_LINES  8
#define SHARE_OUTPUT ((size_t)4096)
#define SHARE_US     INT64_C(100)

/* --- the end ------------------------------------------------------------------------------------------------------- */

static int socket_error(int fd)
{
	int error = 0;
	socklen_t n = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) ? errno : error;
}

/* From the loop: calls sink.gone at once, because requests of others in the same pass may depend on it. */
static void conn_end_here(struct conn *c, short events)
{
	conn_fail(c, conn_how_gone(c, events, socket_error(c->fd)));
	conn_leave_turns(c);
	conn_take_turn(c);
}

/* Whether there is input that was not passed on yet. */
static bool conn_has_lines(const struct conn *c)
{
	int unread = 0;

	return (c->rest && !c->partial) || (!ioctl(c->fd, FIONREAD, &unread) && unread > 0);
}

/* Calls sink.half_closed, once. True: the sink was called, and c may be freed. */
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

/*
 * Checks a connection that is not read and has an event, or whose peer has closed. A half-closed connection goes on. It ends by an error, or if both sides are
 * closed. True: the sink was called, and c may be freed.
 */
static bool conn_is_over(struct conn *c)
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

/* --- input --------------------------------------------------------------------------------------------------------- */

static void conn_end(struct conn *c)
{
	c->ended = true;
	conn_drop_input(c);
	conn_set_state(c, CONN_ENDED, "eof");
	conn_arm(c);
	if (c->state == CONN_ENDED)
		c->hub->sink.eof(c->hub->sink.context, c->session);
}

/* Moves the kept input of n bytes to the start of scratch. */
static void conn_put_back(struct conn *c, size_t n)
{
	if (!c->rest)
		return;
	memcpy(c->hub->scratch, buf_begin(c->rest), n);
	conn_drop_input(c);
}

/* An unfinished line grows where it is kept. So each byte is looked at and copied only a few times, even if it comes in tiny pieces. */
static bool conn_keeps_on(struct conn *c, size_t n, size_t got)
{
	const char *more = c->hub->scratch + n;

	if (got == 0 || !c->rest || !c->partial || n + got >= c->hub->conf.line_max || memchr(more, '\n', got))
		return false;
	conn_add_input(c, more, got);
	return true;
}

static void conn_keep(struct conn *c, const struct lines *l)
{
	c->skipping = l->skipping;
	if (l->at == l->end)
		return;
	conn_add_input(c, l->at, (size_t)(l->end - l->at));
	c->partial = !memchr(l->at, '\n', (size_t)(l->end - l->at));
}

/* In a pass of the loop a connection has a share of lines, of bytes of answers, and of time after its first line. So busy ones do not delay others. */
static bool share_is_used_up(struct hub *h, unsigned lines)
{
	if (lines == 1)
		h->turn_ends = instant_add(clock_boottime(), SHARE_US);
	return lines >= SHARE_LINES || h->spoken >= SHARE_OUTPUT || (lines > 1 && !instant_before(clock_boottime(), h->turn_ends));
}

/* Passes lines of scratch to the sink until none is left or wanted, or the share of c is used up. False: c may be freed, or must not be read now. */
static bool conn_pass_lines(struct conn *c, size_t n)
{
	struct hub *h = c->hub;
	const struct net_sink *sink = &h->sink;
	struct lines l = {.at = h->scratch, .end = h->scratch + n, .max = h->conf.line_max, .skipping = c->skipping};
	unsigned passed = 0;
	size_t length;
	enum line kind;
	char *line;

	h->current = c;
	h->spoken = 0;
	while (!h->paused && conn_wants_lines(c) && !(c->queued = l.at < l.end && share_is_used_up(h, passed)) &&
	       (kind = lines_next(&l, &line, &length)) != LINE_NONE) {
		passed++;
		if (kind == LINE_WHOLE)
			sink->line(sink->context, c->session, line, length);
		else
			sink->too_long(sink->context, c->session, line, length);
		if (h->current != c)
			return false;
	}
	h->current = NULL;
	conn_keep(c, &l);
	if (c->queued)
		conn_want_turn(c);
	return !h->paused && conn_wants_lines(c) && !c->queued && c->state != CONN_FAILED;
}

/*
 * Passes on the kept input and the input of one recv(2). Kept input of line_max bytes or more goes alone, because scratch could not
 * hold another read. True: there may be more to read, and c exists.
 */
static bool conn_pump(struct conn *c, bool may_read)
{
	struct hub *h = c->hub;
	size_t n = c->rest ? buf_length(c->rest) : 0;
	bool asked = may_read && n < h->conf.line_max;
	ssize_t got = asked ? conn_get(c, h->scratch + n, HUB_READ) : 0;

	if (got < 0 && errno != EAGAIN && errno != EINTR) {
		conn_read_failed(c, errno);
		return false;
	}
	h->counts.bytes_in += got > 0 ? (uint64_t)got : 0;
	if (conn_keeps_on(c, n, got > 0 ? (size_t)got : 0))
		return true;
	conn_put_back(c, n);
	if (!conn_pass_lines(c, n + (got > 0 ? (size_t)got : 0)))
		return false;
	if (!asked || got != 0)
		return got > 0;
	if (c->mute)
		conn_end_here(c, POLLHUP);
	else
		conn_end(c);
	return false;
}

void conn_read(struct conn *c, bool on)
{
	if (c->reading == on)
		return;
	c->reading = on;
	/* When reading is switched off, epoll is changed only at the next event: most often reading is on again before that. */
	if (!on || c->state != CONN_OPEN)
		return;
	if (c->rest)
		conn_want_turn(c);
	conn_arm(c);
}

/* --- events -------------------------------------------------------------------------------------------------------- */

static void closing_ready(struct conn *c, short what)
{
	if ((what & (EV_READ | EV_CLOSED)) && !closing_drop_input(c))
		return;
	if (what & EV_WRITE) {
		c->blocked = false;
		conn_flush(c);
	}
}

static void conn_take_input(struct conn *c, bool parted)
{
	if ((parted || !conn_takes_input(c)) && conn_is_over(c))
		return;
	if (c->queued)
		return;
	c->hub->sockets.handled++;
	if (!conn_takes_input(c)) {
		conn_arm(c);
		return;
	}
	/* A mute connection is read to its end, so that the sink gets the end in this pass. It takes longer only if the lines before it take more than one
	 * share. */
	while (conn_pump(c, true) && c->mute)
		;
}

/* Whether it must wait for its turn: the time of this pass is used up, or others of its peer wait to be read. */
static bool conn_is_late(const struct conn *c)
{
	return c->hub->sockets.late || (c->share && c->share->unread > 0);
}

/* For a session, c is not freed before the last statement of this function. */
void conn_ready(struct conn *c, short what)
{
	if (c->state >= CONN_CLOSING) {
		closing_ready(c, what);
		return;
	}
	if (what & EV_WRITE) {
		c->blocked = c->stuck = false;
		conn_flush(c);
		if (c->rest || c->awaits)
			conn_want_turn(c);
	}
	if (!(what & (EV_READ | EV_CLOSED)))
		return;
	if (c->hub->paused)
		conn_arm(c);
	else if (conn_is_late(c))
		conn_wait_to_be_read(c, what & EV_CLOSED);
	else
		conn_take_input(c, what & EV_CLOSED);
}

/* False: c may be freed. */
static bool conn_report_sent(struct conn *c)
{
	struct hub *h = c->hub;

	if (!c->awaits || conn_is_full(c))
		return true;
	c->awaits = false;
	h->current = c;
	h->sink.sent(h->sink.context, c->session);
	if (h->current != c)
		return false;
	h->current = NULL;
	return true;
}

void conn_take_turn(struct conn *c)
{
	const struct net_sink *sink = &c->hub->sink;
	uint64_t session = c->session;
	enum gone how = c->fate;
	bool unread = c->unread, parted = c->parted;

	c->queued = c->unread = c->parted = false;
	if (c->state == CONN_FAILED) {
		conn_free(c);
		sink->gone(sink->context, session, how);
	} else if (c->state == CONN_DISMISSED) {
		closing_begin(c);
		sink->gone(sink->context, session, GONE_RESTART);
	} else if (conn_report_sent(c)) {
		if (unread)
			conn_take_input(c, parted);
		else if (conn_takes_input(c))
			(void)conn_pump(c, false);
	}
}

/* Events that came in a pause were ignored. */
void conn_resume(struct conn *c)
{
	if (c->state == CONN_FAILED)
		return;
	conn_watch(c);
	if (c->rest || c->awaits)
		conn_want_turn(c);
}

/* --- begin and end ------------------------------------------------------------------------------------------------- */

void conn_open(struct hub *h, int fd, const struct peer *peer, struct ssl_st *tls)
{
	struct conn *c = secure_conn_new(h, fd, tls);

	c->is_unix = peer->is_unix;
	c->reading = true;
	c->session = slots_take(&h->slots, c);
	c->share = shares_enter(&h->shares, peer);
	h->counts.accepted[conn_transport(c)]++;
	conn_arm(c);
	h->sink.open(h->sink.context, c->session, peer);
}
