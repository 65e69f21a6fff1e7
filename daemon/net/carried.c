/* SPDX-License-Identifier: BSD-2-Clause */
/* See carried.h. Events are not carried: the loop of the next process reports anew what there is at the socket. It must never call the sink. */
#include "daemon/net/carried.h"

#include "daemon/base/mem.h"
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"
#include "daemon/net/conn_state.h"
#include "daemon/net/ending.h"
#include "daemon/net/held.h"
#include "daemon/net/secure.h"
#include "daemon/net/sockets.h"

#include <fcntl.h>

static char *buf_pack(const struct buf *b, size_t *ret_n)
{
	*ret_n = b ? buf_length(b) : 0;
	return *ret_n ? mem_copy(buf_begin(b), *ret_n) : NULL;
}

static struct buf *buf_unpack(struct hub *h, char *bytes, size_t n)
{
	struct buf *b = bytes ? hub_buf_get(h) : NULL;

	if (b)
		buf_append(b, bytes, n);
	mem_free(bytes);
	return b;
}

void carried_pack(struct carried_conn *to, struct conn *c, struct fdlist *fds)
{
	to->session = c->session;
	to->place = CARRIED_NO_FD;
	to->share_n = c->share ? c->share->n : 0;
	to->share = c->share ? mem_copy(c->share->name, c->share->n) : NULL;
	to->state = c->state;
	to->fate = c->fate;
	if (c->state != CONN_FAILED) {
		to->rest = buf_pack(c->rest, &to->rest_n);
		to->out = buf_pack(c->out, &to->out_n);
		to->is_unix = c->is_unix;
		to->reading = c->reading;
		to->skipping = c->skipping;
		to->ended = c->ended;
		to->half_closed = c->half_closed;
		to->mute = c->mute;
		to->awaits = c->awaits;
		to->is_refused = c->is_refused;
		sockets_forget(c);
		to->place = fdlist_add(fds, c->fd);
		c->fd = -1;
	}
	conn_free(c);
}

static void session_unpack(const struct carried_conn *from, struct conn *c)
{
	struct hub *h = c->hub;

	if (!slots_put(&h->slots, from->session, c)) {
		conn_free(c);
		return;
	}
	c->session = from->session;
	if (c->fd < 0) {
		conn_set_state(c, CONN_FAILED, "carried");
		c->fate = from->state == CONN_FAILED ? from->fate : GONE_RESTART;
		conn_want_telling(c);
		return;
	}
	c->state = from->state;
	conn_resume(c);
}

/* Kept input must fit into the buffer of the hub. Lines may have been longer in the previous process. */
static void scratch_fit(struct hub *h, size_t n)
{
	if (n > h->conf.line_max + HUB_READ)
		h->scratch = mem_grow(h->scratch, n, 1);
}

void carried_unpack(struct carried_conn *from, struct hub *h, struct fdlist *fds)
{
	int fd = fdlist_take(fds, from->place);
	struct conn *c = secure_conn_new(h, fd, NULL);

	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	scratch_fit(h, from->rest_n);
	c->rest = buf_unpack(h, from->rest, from->rest_n);
	c->out = buf_unpack(h, from->out, from->out_n);
	c->share = from->share ? shares_join(&h->shares, from->share, from->share_n) : from->session ? shares_join(&h->shares, "", 0) : NULL;
	conn_count_held(c);
	c->blocked = c->out != NULL; /* so `sent` comes once the loop finds room at the socket */
	c->is_unix = from->is_unix;
	c->reading = from->reading;
	c->skipping = from->skipping;
	c->ended = from->ended;
	c->half_closed = from->half_closed;
	c->mute = from->mute;
	c->awaits = from->awaits;
	c->is_refused = from->is_refused;
	if (from->session)
		session_unpack(from, c);
	else if (fd < 0)
		conn_free(c);
	else
		closing_resume(c, (enum conn_state)from->state);
	mem_free(from->share);
}
