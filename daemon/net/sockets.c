/* SPDX-License-Identifier: BSD-2-Clause */
/* See sockets.h. */
#include "daemon/net/sockets.h"

#include "daemon/base/clock.h"

#include <errno.h>
#include <unistd.h>

#define CLOCK_LOOK 4
#define ASKED_MOST 16 /* times in a pass: it takes about 5 us to find that 64 sockets already wait */

static uint32_t epoll_of(short events)
{
	return (events & EV_READ ? EPOLLIN : 0) | (events & EV_WRITE ? EPOLLOUT : 0) | (events & EV_CLOSED ? EPOLLRDHUP : 0) | (events & EV_ET ? EPOLLET : 0);
}

/* The next read or write finds an error, or the end of both sides. */
static short events_of(uint32_t reported)
{
	if ((reported & EPOLLERR) || ((reported & EPOLLHUP) && !(reported & EPOLLRDHUP)))
		return EV_READ | EV_WRITE;
	return (short)((reported & EPOLLIN ? EV_READ : 0) | (reported & EPOLLOUT ? EV_WRITE : 0) | (reported & EPOLLRDHUP ? EV_CLOSED : 0));
}

static void drop_reported(struct sockets *s, const struct conn *c)
{
	for (unsigned i = s->at; i < s->n; i++)
		if (s->reported[i].data.ptr == c)
			s->reported[i].data.ptr = NULL;
}

bool sockets_watch(struct conn *c, short events)
{
	struct sockets *s = &c->hub->sockets;
	struct epoll_event wanted = {.events = epoll_of(events), .data.ptr = c};

	drop_reported(s, c);
	if (epoll_ctl(s->epoll, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &wanted))
		return false;
	c->watched = events;
	return true;
}

void sockets_forget(struct conn *c)
{
	struct sockets *s = &c->hub->sockets;

	if (!c->watched)
		return;
	drop_reported(s, c);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	c->watched = 0;
}

static void sockets_ask(struct sockets *s)
{
	int n;

	if (s->at < s->n)
		return;
	n = epoll_wait(s->epoll, s->reported, SOCKETS_AT_ONCE, 0);
	s->at = 0;
	s->n = n > 0 ? (unsigned)n : 0;
	s->cut = s->ended = false;
}

/*
 * To end a session may take long, and many may end together. So once ends have cut the pass, the other ends wait until epoll reports them again, after the
 * sockets that have requests meanwhile.
 */
static bool socket_waits(struct sockets *s, const struct conn *c, uint32_t reported)
{
	bool ends = reported & (EPOLLRDHUP | EPOLLHUP | EPOLLERR), waits = ends && s->ended && s->cut && !(c->watched & EV_ET);

	s->ended |= ends;
	return waits;
}

static void socket_ready(struct sockets *s, const struct epoll_event *reported)
{
	struct conn *c = reported->data.ptr;
	short what = c ? (short)(events_of(reported->events) & c->watched) : 0;

	if (what && !socket_waits(s, c, reported->events))
		s->handle(c, what);
}

/* The clock is read after every few sockets, since most take little time. */
static bool pass_is_over(const struct hub *h, struct instant end)
{
	return event_base_got_break(h->base) || (h->sockets.at % CLOCK_LOOK == 0 && !instant_before(clock_boottime(), end));
}

static void sockets_take(struct hub *h, struct instant end)
{
	struct sockets *s = &h->sockets;

	sockets_ask(s);
	while (s->at < s->n) {
		socket_ready(s, &s->reported[s->at++]);
		if (!s->late && s->at < s->n && pass_is_over(h, end))
			s->late = s->cut = true;
	}
}

/* If all reported sockets already wait for their turns, others may be ready that were not reported yet. */
static void on_ready(evutil_socket_t fd, short what, void *context)
{
	struct instant end = instant_add(clock_boottime(), SOCKETS_US);
	struct hub *h = context;
	struct sockets *s = &h->sockets;
	unsigned asked = 0;

	(void)fd, (void)what;
	s->late = false;
	s->handled = 0;
	do
		sockets_take(h, end);
	while (s->n == SOCKETS_AT_ONCE && s->handled == 0 && ++asked < ASKED_MOST);
	if (s->late)
		event_base_loopbreak(h->base);
}

int sockets_init(struct hub *h, void (*handle)(struct conn *c, short what))
{
	struct sockets *s = &h->sockets;

	s->handle = handle;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return -errno;
	s->ready = event_new(h->base, s->epoll, EV_READ | EV_PERSIST, on_ready, h);
	if (s->ready && !event_add(s->ready, NULL))
		return 0;
	sockets_release(h);
	return -ENOMEM;
}

void sockets_release(struct hub *h)
{
	if (h->sockets.ready)
		event_free(h->sockets.ready);
	close(h->sockets.epoll);
}
