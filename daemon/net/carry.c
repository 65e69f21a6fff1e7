/* SPDX-License-Identifier: BSD-2-Clause */
/* See carry.h. It must never call the sink. */
#include "daemon/net/carry.h"

#include "daemon/base/mem.h"
#include "daemon/net/acceptor.h"
#include "daemon/net/carried.h"
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"
#include "daemon/net/conn_state.h"
#include "daemon/net/ending.h"
#include "daemon/net/handshakes.h"
#include "daemon/net/held.h"
#include "daemon/net/output.h"
#include "daemon/net/secure.h"
#include "daemon/net/sockets.h"
#include "daemon/net/turns.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* --- one connection ------------------------------------------------------------------------------------------------------- */

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

/* Memory of mem.h. Frees the connection, and appends its descriptor to the list. A failed one is closed. */
static void carried_pack(struct carried_conn *to, struct conn *c, struct fdlist *fds)
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
		conn_want_turn(c);
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

/* A session whose number is in use is closed. Frees what `from` points to. A session whose descriptor is not in the list is gone. */
static void carried_unpack(struct carried_conn *from, struct hub *h, struct fdlist *fds)
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

/* --- pause --------------------------------------------------------------------------------------------------------- */

void net_pause(struct net *n, bool on)
{
	struct hub *h = &n->hub;
	struct conn *c;
	size_t at = 0;

	if (h->paused == on)
		return;
	h->paused = on;
	pacing_pause(&h->handshakes.pacing, on);
	acceptor_pause(&n->acceptor, on);
	if (on)
		return;
	while ((c = slots_next(&h->slots, &at)))
		conn_resume(c);
	event_active(h->run_turns, EV_TIMEOUT, 1);
}

void net_end_tls(struct net *n, const char *line)
{
	struct hub *h = &n->hub;
	struct conn *c;
	size_t at = 0;

	handshake_drop(h);
	while ((c = slots_next(&h->slots, &at))) {
		if (!c->is_tls || c->state >= CONN_DISMISSED)
			continue;
		conn_send(c, line, strlen(line));
		conn_dismiss(c);
	}
}

void net_hangup_all(struct net *n)
{
	struct conn *c;
	size_t at = 0;

	while ((c = slots_next(&n->hub.slots, &at)))
		net_hangup(n, c->session);
}

/* --- pack ---------------------------------------------------------------------------------------------------------- */

/* The sink hears in the next process that such a session is gone. Its connection counts as closing from now on. */
static void session_end(struct carried_conn *to, struct conn *c)
{
	to->session = c->session;
	to->place = CARRIED_NO_FD;
	to->state = CONN_FAILED;
	to->fate = GONE_RESTART;
	closing_begin(c);
}

/* A connection whose output is all written only waits for its peer to close, which needs no TLS: it is carried. One with unread output is closed. */
static void tls_end_all(struct hub *h, struct net_parcel *p)
{
	struct conn *c, *next;
	size_t at = 0;

	while ((c = slots_next(&h->slots, &at)))
		if (c->is_tls && c->state != CONN_FAILED)
			session_end(&p->conn[p->conns++], c);
	hub_flush(h, INSTANT_NEVER);
	for (c = TAILQ_FIRST(&h->closing); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->is_tls && c->state == CONN_CLOSING)
			closing_finish(c);
	}
}

static void conns_pack(struct hub *h, struct net_parcel *p, struct fdlist *fds)
{
	struct conn *c;
	size_t at = 0;

	while ((c = slots_next(&h->slots, &at)))
		carried_pack(&p->conn[p->conns++], c, fds);
	while ((c = TAILQ_FIRST(&h->closing)))
		carried_pack(&p->conn[p->conns++], c, fds);
}

static void listeners_pack(struct acceptor *a, struct net_parcel *p, struct fdlist *fds)
{
	struct carried_listener *to;
	struct listener l;
	bool tls;

	while (acceptor_give(a, &l, &tls)) {
		p->listener = mem_grow(p->listener, p->listeners + 1, sizeof(*p->listener));
		to = memset(&p->listener[p->listeners++], 0, sizeof(*to));
		to->place = fdlist_add(fds, l.fd);
		to->path = mem_text(l.path);
		to->device = l.device;
		to->inode = l.inode;
		to->tls = tls;
		mem_free(l.path);
	}
}

struct net_parcel *net_pack(struct net *n, struct fdlist *fds)
{
	struct hub *h = &n->hub;
	struct net_parcel *p = mem_alloc(sizeof(*p));

	assert(h->paused && !h->current);
	/* A session inside TLS counts twice, since its connection is closing then. */
	p->conn = mem_alloc((2 * (size_t)h->slots.live + h->closing_n) * sizeof(*p->conn));
	tls_end_all(h, p);
	conns_pack(h, p, fds);
	net_listen_no_more(n);
	listeners_pack(&n->acceptor, p, fds);
	return p;
}

/* --- unpack -------------------------------------------------------------------------------------------------------- */

static void listeners_unpack(struct acceptor *a, const struct net_parcel *p, struct fdlist *fds)
{
	for (size_t i = 0; i < p->listeners; i++) {
		const struct carried_listener *from = &p->listener[i];
		struct listener l = {.fd = fdlist_take(fds, from->place), .device = from->device, .inode = from->inode};

		if (l.fd >= 0) {
			fcntl(l.fd, F_SETFD, FD_CLOEXEC);
			l.path = mem_text(from->path);
			inherited_add(&a->inherited, &l, from->tls);
		}
		mem_free(from->path);
	}
	mem_free(p->listener);
}

void net_unpack(struct net *n, struct net_parcel *p, struct fdlist *fds)
{
	struct hub *h = &n->hub;

	for (size_t i = 0; i < p->conns; i++) {
		h->counts.handed_over += p->conn[i].state < CONN_DISMISSED;
		carried_unpack(&p->conn[i], h, fds);
	}
	listeners_unpack(&n->acceptor, p, fds);
	mem_free(p->conn);
	mem_free(p);
	/* The owner flushes at the end of a pass, and there may be output. */
	event_active(h->run_turns, EV_TIMEOUT, 1);
}

void net_parcel_free(struct net_parcel *p)
{
	for (size_t i = 0; i < p->conns; i++) {
		mem_free(p->conn[i].rest);
		mem_free(p->conn[i].out);
		mem_free(p->conn[i].share);
	}
	for (size_t i = 0; i < p->listeners; i++)
		mem_free(p->listener[i].path);
	mem_free(p->conn);
	mem_free(p->listener);
	mem_free(p);
}

int net_listen_again(struct net *n, bool (*may)(void *context, int fd, bool tls), void *context)
{
	struct listener l;
	bool tls;
	int r = 0;

	while (!r && inherited_take(&n->acceptor.inherited, &l, &tls)) {
		if (!may || may(context, l.fd, tls))
			r = acceptor_add(&n->acceptor, &l, tls);
		else
			listener_release(&l);
	}
	return r;
}

void net_listen_no_more(struct net *n)
{
	inherited_release(&n->acceptor.inherited);
}
