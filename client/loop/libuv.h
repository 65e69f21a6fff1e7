/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libredlock in a loop of libuv. After each call that sends, call redlock_libuv_update; before redlock_close, redlock_libuv_stop. The loop calls
 * ready whenever something may have arrived. Then take the pushes. If redlock_in_flight returns false, take the answer by redlock_finish. r is 0, or
 * the negative errno that has ended the connection. ready may send, stop, and close.
 */
#ifndef REDLOCK_LIBUV_H
#define REDLOCK_LIBUV_H

#include <errno.h>
#include <poll.h>
#include <redlock.h>
#include <stdlib.h>
#include <uv.h>

struct redlock_libuv {
	uv_loop_t *loop;
	uv_timer_t *timer;
	uv_poll_t *poll; /* NULL: there is no connection */
	int fd;          /* the descriptor of poll */
	struct redlock *c;
	void (*ready)(void *arg, int r);
	void *arg;
};

static inline void redlock_libuv_free(uv_handle_t *handle)
{
	free(handle);
}

/* The loop frees the handles later. */
static inline void redlock_libuv_stop(struct redlock_libuv *l)
{
	if (l->poll)
		uv_close((uv_handle_t *)l->poll, redlock_libuv_free);
	if (l->timer)
		uv_close((uv_handle_t *)l->timer, redlock_libuv_free);
	l->poll = NULL;
	l->timer = NULL;
}

static inline void redlock_libuv_update(struct redlock_libuv *l);

static inline void redlock_libuv_go(struct redlock_libuv *l)
{
	int r;

	if (l->poll)
		uv_poll_stop(l->poll); /* the descriptor may be closed now, and the next one may get its number */
	r = redlock_process(l->c);
	if (r)
		uv_timer_stop(l->timer);
	else
		redlock_libuv_update(l);
	l->ready(l->arg, r);
}

static inline void redlock_libuv_happened(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	redlock_libuv_go((struct redlock_libuv *)poll->data);
}

static inline void redlock_libuv_due(uv_timer_t *timer)
{
	redlock_libuv_go((struct redlock_libuv *)timer->data);
}

/* Makes the handle for the current descriptor. If memory is short, the timer tries again. */
static inline void redlock_libuv_follow(struct redlock_libuv *l, int fd)
{
	if (l->poll && l->fd == fd)
		return;
	if (l->poll)
		uv_close((uv_handle_t *)l->poll, redlock_libuv_free);
	l->poll = fd < 0 ? NULL : (uv_poll_t *)malloc(sizeof(uv_poll_t));
	l->fd = fd;
	if (l->poll && uv_poll_init(l->loop, l->poll, fd)) {
		free(l->poll);
		l->poll = NULL;
	}
	if (l->poll)
		l->poll->data = l;
}

static inline void redlock_libuv_update(struct redlock_libuv *l)
{
	int64_t due = redlock_due_us(l->c), left = due - redlock_now_us();
	short events = redlock_events(l->c);

	redlock_libuv_follow(l, redlock_fd(l->c));
	if (l->poll)
		uv_poll_start(l->poll, (events & POLLIN ? UV_READABLE : 0) | (events & POLLOUT ? UV_WRITABLE : 0), redlock_libuv_happened);
	else if (redlock_fd(l->c) >= 0)
		due = left = 0;
	if (due == INT64_MAX)
		uv_timer_stop(l->timer);
	else
		uv_timer_start(l->timer, redlock_libuv_due, left > 0 ? (uint64_t)left / 1000 + 1 : 1, 0);
}

/* 0 or -ENOMEM. */
static inline int redlock_libuv_start(struct redlock_libuv *l, uv_loop_t *loop, struct redlock *c, void (*ready)(void *arg, int r), void *arg)
{
	l->timer = (uv_timer_t *)malloc(sizeof(uv_timer_t));
	if (!l->timer)
		return -ENOMEM;
	l->loop = loop;
	l->poll = NULL;
	l->fd = -1;
	l->c = c;
	l->ready = ready;
	l->arg = arg;
	uv_timer_init(loop, l->timer);
	l->timer->data = l;
	redlock_libuv_update(l);
	return 0;
}

#endif
