/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for an answer: the one place of the library where time passes, but for connecting and the farewell.
 */
#include "client/conn.h"

#include <errno.h>
#include <poll.h>

/* The milliseconds that poll may wait; it counts another clock, so the moment is looked at again afterwards. */
static int poll_left(int64_t until_us)
{
	int64_t left = until_us - redlock_now_us();

	if (until_us == INT64_MAX)
		return -1;
	if (left <= 0)
		return 0;
	return left > 60000000 ? 60000 : (int)(left / US_PER_MS) + 1;
}

int64_t conn_until(int64_t wait_ms)
{
	int64_t now = redlock_now_us();

	return wait_ms < 0 || wait_ms > (INT64_MAX - now) / US_PER_MS ? INT64_MAX : now + wait_ms * US_PER_MS;
}

int redlock_finish(struct redlock *c, int64_t timeout_ms)
{
	int64_t until = conn_until(timeout_ms), due;
	struct pollfd fd;
	int r = 0, left;

	if (!c->in_flight && !c->answered && !c->aborted)
		return conn_says(c, -EINVAL, "nothing was asked");
	while (c->in_flight) {
		r = redlock_process(c);
		if (r || !c->in_flight)
			break;
		left = poll_left(until);
		if (!left)
			return conn_says(c, -EAGAIN, "no answer yet");
		due = reconnect_due(c);
		if (due < until)
			left = poll_left(due);
		fd = (struct pollfd){.fd = c->fd, .events = redlock_events(c)};
		if (poll(&fd, 1, left) < 0 && errno != EINTR)
			return conn_break(c, -errno, "waiting failed");
	}
	if (c->aborted) {
		c->aborted = false;
		return conn_says(c, -ECONNABORTED, "the connection broke before the answer came; it may have been done");
	}
	/* An answer that came complete counts, whatever ended the connection behind it. */
	return c->in_flight ? r : conn_outcome(c);
}

int conn_await(struct redlock *c, int64_t wait_ms)
{
	int64_t limit = wait_ms < 0 || wait_ms > INT64_MAX - c->timeout_ms ? REDLOCK_FOREVER : wait_ms + c->timeout_ms;
	int r = redlock_finish(c, limit);

	if (r != -EAGAIN)
		return r;
	return c->link == LINK_UP && !c->again_us ? conn_break(c, -ETIMEDOUT, "redlockd does not answer") : ask_give_up(c);
}
