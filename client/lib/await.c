/* SPDX-License-Identifier: BSD-2-Clause */
/* See await.h. */
#include "client/lib/await.h"
#include "client/lib/boottime.h"
#include "client/lib/exchange.h"
#include "client/lib/recovery.h"

#include <errno.h>
#include <poll.h>
#include <sys/param.h>

/* Waits until something comes or is due. */
static int await_something(struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->channel.fd, .events = redlock_events(c)};

	if (poll(&fd, 1, boottime_poll_ms(MIN(until, recovery_due_us(c)))) < 0 && errno != EINTR)
		return conn_break(c, -errno, "waiting failed");
	return 0;
}

/* Returns 0 when the request is no longer in flight. */
static int await_end(struct redlock *c, int64_t until)
{
	int r = 0;

	while (!r && c->pending.in_flight) {
		r = redlock_process(c);
		if (r || !c->pending.in_flight)
			break;
		if (boottime_poll_ms(until) == 0)
			return conn_says(c, -EAGAIN, "no answer yet");
		r = await_something(c, until);
	}
	return r;
}

int redlock_finish(struct redlock *c, int64_t timeout_ms)
{
	int r;

	if (!c->pending.in_flight && !c->answered && !c->aborted)
		return conn_says(c, -EINVAL, "nothing was asked");
	r = await_end(c, boottime_after(timeout_ms));
	if (c->aborted) {
		c->aborted = false;
		return conn_says(c, -ECONNABORTED, "the connection broke before the answer came; the request may have been done");
	}
	/* A complete answer counts, even if the connection ended right after it. */
	return c->pending.in_flight ? r : outcome_of(&c->answer.parsed, c->code, c->message);
}

int redlock_wait_push(struct redlock *c, int64_t timeout_ms, const struct redlock_line **ret_push)
{
	int64_t until = boottime_after(timeout_ms);
	const struct redlock_line *push;
	int r;

	for (;;) {
		r = redlock_process(c);
		push = pushes_next(&c->pushes);
		if (push)
			break;
		if (!r && boottime_poll_ms(until) == 0)
			return conn_says(c, -EAGAIN, "no push yet");
		if (!r)
			r = await_something(c, until);
		if (r)
			return r;
	}
	*ret_push = push;
	return 0;
}

int await_answer(struct redlock *c, int64_t wait_ms)
{
	int64_t limit = wait_ms < 0 || wait_ms > INT64_MAX - c->timeout_ms ? REDLOCK_FOREVER : wait_ms + c->timeout_ms;
	int r = redlock_finish(c, limit);

	if (r != -EAGAIN)
		return r;
	r = exchange_give_up(c);
	if (r)
		return r;
	c->broken = -ETIMEDOUT;
	return conn_says(c, -ETIMEDOUT, "redlockd at %s does not answer", c->place);
}

int await_draft(struct redlock *c, enum pending_kind kind, int64_t busy_ms, const struct await_rows *rows)
{
	int r;

	r = exchange_draft(c, kind, "");
	if (!r)
		r = exchange_begin(c);
	if (r)
		return r;
	c->row = rows ? rows->row : NULL;
	c->row_arg = rows ? rows->arg : NULL;
	return await_answer(c, busy_ms);
}
