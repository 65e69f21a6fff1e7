/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libredlock in a loop of poll(2): redlock_poll_before fills a row of the table, redlock_poll_after does what is due.
 *
 *     struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}};
 *     int r = 0;
 *
 *     while (!r) {
 *         int timeout = redlock_poll_before(c, &fds[1], -1);
 *
 *         poll(fds, 2, timeout);
 *         r = redlock_poll_after(c);
 *         ...
 *     }
 */
#ifndef REDLOCK_POLL_H
#define REDLOCK_POLL_H

#include <limits.h>
#include <poll.h>
#include <redlock.h>

/* timeout_ms: how long the loop would wait otherwise, or -1. Returns how long it may wait. */
static inline int redlock_poll_before(const struct redlock *c, struct pollfd *row, int timeout_ms)
{
	int64_t due = redlock_due_us(c), now = redlock_now_us(), left;

	row->fd = redlock_fd(c);
	row->events = redlock_events(c);
	row->revents = 0;
	if (due == INT64_MAX)
		return timeout_ms;
	left = due > now ? (due - now) / 1000 + 1 : 0;
	if (left > INT_MAX)
		left = INT_MAX;
	return timeout_ms >= 0 && timeout_ms < left ? timeout_ms : (int)left;
}

/* 0, or the negative errno that has ended the connection. Afterwards look for pushes and for an answer. */
static inline int redlock_poll_after(struct redlock *c)
{
	return redlock_process(c);
}

#endif
