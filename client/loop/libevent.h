/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libredlock in a loop of libevent. After each call that sends, call redlock_libevent_update; before redlock_close, redlock_libevent_stop. The loop
 * calls ready whenever something may have arrived. Then take the pushes. If redlock_in_flight returns false, take the answer by redlock_finish. r is
 * 0, or the negative errno that has ended the connection. ready may send, stop, and close.
 */
#ifndef REDLOCK_LIBEVENT_H
#define REDLOCK_LIBEVENT_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <redlock.h>

struct redlock_libevent {
	struct event_base *base;
	struct event event;
	struct redlock *c;
	void (*ready)(void *arg, int r);
	void *arg;
};

static inline void redlock_libevent_stop(struct redlock_libevent *l)
{
	event_del(&l->event);
}

static inline void redlock_libevent_update(struct redlock_libevent *l);

static inline void redlock_libevent_happened(evutil_socket_t fd, short what, void *arg)
{
	struct redlock_libevent *l = (struct redlock_libevent *)arg;
	int r;

	(void)fd;
	(void)what;
	redlock_libevent_stop(l); /* the descriptor may be closed now, and the next one may get its number */
	r = redlock_process(l->c);
	if (!r)
		redlock_libevent_update(l);
	l->ready(l->arg, r);
}

static inline void redlock_libevent_update(struct redlock_libevent *l)
{
	int64_t due = redlock_due_us(l->c), left = due - redlock_now_us();
	short events = redlock_events(l->c), what = 0;
	struct timeval timeout;

	if (left < 0)
		left = 0;
	timeout.tv_sec = left / 1000000;
	timeout.tv_usec = left % 1000000;
	if (redlock_fd(l->c) >= 0)
		what = (short)((events & POLLIN ? EV_READ : 0) | (events & POLLOUT ? EV_WRITE : 0));
	redlock_libevent_stop(l);
	event_assign(&l->event, l->base, redlock_fd(l->c), what, redlock_libevent_happened, l);
	event_add(&l->event, due == INT64_MAX ? NULL : &timeout);
}

static inline void redlock_libevent_start(struct redlock_libevent *l, struct event_base *base, struct redlock *c, void (*ready)(void *arg, int r), void *arg)
{
	l->base = base;
	l->c = c;
	l->ready = ready;
	l->arg = arg;
	event_assign(&l->event, base, -1, 0, redlock_libevent_happened, l);
	redlock_libevent_update(l);
}

#endif
