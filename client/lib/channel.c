/* SPDX-License-Identifier: BSD-2-Clause */
/* See channel.h. */
#include "client/lib/channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

const struct tls_calls *redlock_secure;

#define IN_FIRST ((size_t)2 * REPLY_MAX)
#define OUT_MOST ((size_t)LINE_MAX_DEFAULT + 64)

void channel_close(struct channel *ch)
{
	if (ch->tls)
		redlock_secure->free(ch->tls);
	ch->tls = NULL;
	if (ch->fd >= 0)
		close(ch->fd);
	ch->fd = -1;
	ch->mute = ch->closed = false;
	ch->in_at = ch->in_n = 0;
	ch->out_at = ch->out_n = 0;
}

/* --- out --- */

int channel_append(struct channel *ch, const char *line, size_t n)
{
	size_t left = ch->out_n - ch->out_at;

	if (left + n + 1 > OUT_MOST)
		return -ENOBUFS;
	if (buffer_grow(&ch->out, left + n + 1))
		return -ENOMEM;
	memmove(ch->out.p, ch->out.p + ch->out_at, left);
	memcpy(ch->out.p + left, line, n);
	ch->out.p[left + n] = '\n';
	ch->out_at = 0, ch->out_n = left + n + 1;
	return 0;
}

bool channel_unsent(const struct channel *ch)
{
	return ch->out_at < ch->out_n;
}

static ssize_t bytes_send(struct channel *ch, const char *bytes, size_t n)
{
	return ch->tls ? redlock_secure->send(ch->tls, bytes, n) : send(ch->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int channel_flush(struct channel *ch)
{
	ssize_t n;

	while (channel_unsent(ch)) {
		n = bytes_send(ch, ch->out.p + ch->out_at, ch->out_n - ch->out_at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		ch->mute = false;
		ch->out_at += (size_t)n;
	}
	return 0;
}

/* --- in --- */

/* TLS may keep bytes for which there was no room, so read until nothing comes. */
static ssize_t bytes_recv(struct channel *ch, char *bytes, size_t n)
{
	ssize_t got = ch->tls ? redlock_secure->recv(ch->tls, bytes, n) : recv(ch->fd, bytes, n, MSG_DONTWAIT);

	if (got < 0 && errno == EBUSY)
		errno = EAGAIN;
	return got;
}

int channel_read(struct channel *ch)
{
	ssize_t n;

	if (ch->in_n == ch->in.size && buffer_grow(&ch->in, ch->in_n + IN_FIRST))
		return -ENOMEM;
	n = bytes_recv(ch, ch->in.p + ch->in_n, ch->in.size - ch->in_n);
	if (n < 0 && (errno == EINTR || (errno == EAGAIN && !ch->mute)))
		return errno == EINTR;
	if (n < 0)
		return ch->mute ? -EPIPE : -errno;
	ch->closed = n == 0;
	if (ch->closed)
		return -ECONNRESET;
	ch->in_n += (size_t)n;
	return 1;
}

bool channel_line(struct channel *ch, struct span *ret_line)
{
	char *from = ch->in.p + ch->in_at, *end = ch->in_at < ch->in_n ? memchr(from, '\n', ch->in_n - ch->in_at) : NULL;
	size_t n;

	if (!end) {
		if (ch->in_at > 0)
			memmove(ch->in.p, from, ch->in_n - ch->in_at);
		ch->in_n -= ch->in_at;
		ch->in_at = 0;
		return false;
	}
	n = (size_t)(end - from);
	ch->in_at += n + 1;
	*ret_line = (struct span){from, n && from[n - 1] == '\r' ? n - 1 : n};
	return true;
}
