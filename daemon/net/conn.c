/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection from accept(2) to close(2): one recv(2) per readiness, one send(2) per flush, and no buffer but for an unfinished
 * line or unsent output. It must never call the sink from inside a call of the owner. It must never touch a connection that a
 * callback may have freed: after each callback hub.current tells whether the connection still exists.
 */
#include "daemon/net/conn.h"
#include "daemon/base/log.h"
#include "daemon/net/closing.h"
#include "daemon/net/lines.h"
#include "daemon/net/secure.h"
#include "daemon/net/sockets.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define SHARE_LINES  8
#define SHARE_OUTPUT ((size_t)4096)

static const char *const state_name[] = {
	[CONN_OPEN] = "open",       [CONN_ENDED] = "ended",         [CONN_DISMISSED] = "dismissed", [CONN_FAILED] = "failed",
	[CONN_CLOSING] = "closing", [CONN_LINGERING] = "lingering",
};

void conn_set_state(struct conn *c, enum conn_state state, const char *why)
{
	log_event(LOG_DEBUG, "conn-state", "session=%" PRIx64 " fd=%d from=%s to=%s why=%s", c->session, c->fd,
		  state_name[c->state], state_name[state], why);
	c->state = (unsigned char)state;
}

/* --- what epoll is asked for --------------------------------------------------------------------------------------- */

static bool conn_wants_lines(const struct conn *c)
{
	return c->reading && !conn_is_full(c);
}

bool conn_takes_input(const struct conn *c)
{
	if (c->state >= CONN_CLOSING)
		return !c->ended;
	return c->state == CONN_OPEN && conn_wants_lines(c) && !secure_must_write(c);
}

/*
 * Level-triggered while input is taken, else edge-triggered, with EV_READ in both cases. The kernel always reports errors and
 * hang-ups, which count as EV_READ; level-triggered, they would be reported again and again. In a pause no session takes input.
 */
static short conn_wants(const struct conn *c)
{
	int wants = EV_READ | EV_CLOSED;

	if (c->blocked || c->stuck)
		wants |= EV_WRITE;
	if (!conn_takes_input(c) || (c->hub->paused && c->state < CONN_CLOSING))
		wants |= EV_ET;
	return (short)wants;
}

void conn_arm(struct conn *c)
{
	if (c->state != CONN_FAILED && c->watched != conn_wants(c))
		conn_watch(c);
}

void conn_watch(struct conn *c)
{
	/* A connection that cannot be watched ends: a session fails here, a closing one ends by its deadline. */
	if (!sockets_watch(c, conn_wants(c)) && c->session)
		conn_fail(c, GONE_RESET);
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
static void conn_recall(struct conn *c, size_t n)
{
	if (!c->rest)
		return;
	memcpy(c->hub->scratch, buf_begin(c->rest), n);
	conn_drop_input(c);
}

/* A line that is still unfinished grows where it is kept: however small the pieces in which it comes, each byte is looked at and copied only a few times. */
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

/* In each pass of the loop a connection has a share of lines, and of bytes of answers. So busy connections do not delay the others. */
static bool share_is_used_up(const struct conn *c, unsigned lines, size_t unsent)
{
	return lines >= SHARE_LINES || (c->out && buf_length(c->out) >= unsent + SHARE_OUTPUT);
}

/* Passes lines of scratch to the sink until none is left or wanted, or the share of c is used up. False: c may be freed, or must not be read now. */
static bool conn_tell_lines(struct conn *c, size_t n)
{
	struct hub *h = c->hub;
	const struct net_sink *sink = &h->sink;
	struct lines l = {.at = h->scratch, .end = h->scratch + n, .max = h->conf.line_max, .skipping = c->skipping};
	size_t unsent = c->out ? buf_length(c->out) : 0, length;
	unsigned told = 0;
	enum line kind;
	char *line;

	h->current = c;
	while (!h->paused && conn_wants_lines(c) && !(c->queued = share_is_used_up(c, told, unsent)) && (kind = lines_next(&l, &line, &length)) != LINE_NONE) {
		told++;
		if (kind == LINE_WHOLE)
			sink->line(sink->context, c->session, line, length);
		else
			sink->too_long(sink->context, c->session, line, length);
		if (h->current != c)
			return false;
	}
	h->current = NULL;
	c->queued = c->queued && l.at < l.end;
	conn_keep(c, &l);
	if (c->queued)
		conn_want_telling(c);
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
	conn_recall(c, n);
	if (!conn_tell_lines(c, n + (got > 0 ? (size_t)got : 0)))
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
		conn_want_telling(c);
	conn_arm(c);
}

/* --- events -------------------------------------------------------------------------------------------------------- */

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
			conn_want_telling(c);
	}
	if (!(what & (EV_READ | EV_CLOSED)))
		return;
	if (c->hub->paused) {
		conn_arm(c);
		return;
	}
	if (((what & EV_CLOSED) || !conn_takes_input(c)) && conn_is_over(c))
		return;
	if (c->queued)
		return;
	if (!conn_takes_input(c)) {
		conn_arm(c);
		return;
	}
	/* A mute connection is read to its end, so that the sink gets the end in this pass, unless the lines before it take more than one share. */
	while (conn_pump(c, true) && c->mute)
		;
}

/* False: c may be freed. */
static bool conn_tell_sent(struct conn *c)
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

void conn_told(struct conn *c)
{
	const struct net_sink *sink = &c->hub->sink;
	uint64_t session = c->session;
	enum gone how = c->fate;

	c->queued = false;
	if (c->state == CONN_FAILED) {
		conn_free(c);
		sink->gone(sink->context, session, how);
	} else if (c->state == CONN_DISMISSED) {
		closing_begin(c);
		sink->gone(sink->context, session, GONE_RESTART);
	} else if (conn_tell_sent(c) && conn_takes_input(c)) {
		(void)conn_pump(c, false);
	}
}

/* What was reported in a pause was not looked at. */
void conn_resume(struct conn *c)
{
	if (c->state == CONN_FAILED)
		return;
	conn_watch(c);
	if (c->rest || c->awaits)
		conn_want_telling(c);
}

/* --- begin and end ------------------------------------------------------------------------------------------------- */

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
	if (c->session)
		conn_end_session(c);
	sockets_forget(c);
	if (c->is_dirty)
		TAILQ_REMOVE(&h->dirty, c, dirty);
	if (c->is_ready)
		TAILQ_REMOVE(&h->ready, c, link);
	if (c->state >= CONN_CLOSING)
		closing_leave(c);
	conn_drop_input(c);
	conn_drop_output(c);
	if (c->fd >= 0)
		close(c->fd);
	secure_conn_free(c);
}

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
