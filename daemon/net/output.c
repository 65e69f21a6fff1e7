/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of a connection: collected, and written once per flush, or sooner when there is much of it. It must never call the sink but for
 * `writing`: the loop reports errors.
 */
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"
#include "daemon/net/secure.h"

#include <errno.h>

bool conn_is_full(const struct conn *c)
{
	size_t mark = c->hub->conf.output_max / 4;

	return c->out && buf_length(c->out) > (mark < NET_OUTPUT_MARK ? mark : NET_OUTPUT_MARK);
}

int conn_write(struct conn *c)
{
	size_t n = c->out ? buf_length(c->out) : 0;
	ssize_t sent;

	if (!n)
		return 0;
	if (c->hub->sink.writing)
		c->hub->sink.writing(c->hub->sink.context);
	do
		sent = conn_put(c, buf_begin(c->out), n);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN ? 1 : -errno;
	c->hub->counts.bytes_out += (uint64_t)sent;
	buf_consume(c->out, (size_t)sent);
	if ((size_t)sent < n)
		return 1;
	conn_drop_output(c);
	return 0;
}

void conn_flush(struct conn *c)
{
	int r;

	if (c->blocked || c->state == CONN_FAILED)
		return;
	r = conn_write(c);
	if (r < 0) {
		conn_broken(c, -r);
		return;
	}
	c->blocked = r > 0;
	if (c->state == CONN_CLOSING && !c->blocked)
		closing_flushed(c);
	else
		conn_arm(c);
}

void conn_mark_dirty(struct conn *c)
{
	if (c->is_dirty)
		return;
	c->is_dirty = true;
	/* A client that waited for what another has just asked for goes first: others may wait for what it does next. */
	if (c->hub->current && c->hub->current != c)
		TAILQ_INSERT_HEAD(&c->hub->dirty, c, dirty);
	else
		TAILQ_INSERT_TAIL(&c->hub->dirty, c, dirty);
}

static bool conn_has_room(const struct conn *c, size_t size)
{
	size_t n = c->out ? buf_length(c->out) : 0, max = c->hub->conf.output_max;

	return n <= max && size <= max - n;
}

void conn_send(struct conn *c, const void *bytes, size_t size)
{
	if (c->state == CONN_FAILED || c->mute)
		return;
	/* One pass may produce more output than fits, even if the peer reads fast. So the output is written before any of it counts as an overflow. */
	if (!conn_has_room(c, size))
		conn_flush(c);
	if (!conn_has_room(c, size)) {
		conn_fail(c, GONE_OVERFLOW);
		return;
	}
	conn_add_output(c, bytes, size);
	if (c->state == CONN_FAILED)
		return;
	conn_mark_dirty(c);
	if (conn_is_full(c))
		conn_flush(c);
}

void conn_await_sent(struct conn *c)
{
	c->awaits = true;
	conn_want_telling(c);
}
