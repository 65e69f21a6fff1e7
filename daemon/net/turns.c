/* SPDX-License-Identifier: BSD-2-Clause */
/* See turns.h. It must never call the sink but from its own events. */
#include "daemon/net/turns.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"
#include "daemon/net/conn_state.h"
#include "daemon/net/handshakes.h"
#include "daemon/net/output.h"
#include "daemon/net/secure.h"
#include "daemon/net/sockets.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define TURNS_US   INT64_C(100) /* of a pass of the loop, for connections that wait for their turns */

static bool hub_has_turns(const struct hub *h)
{
	return !TAILQ_EMPTY(&h->ended) || (!TAILQ_EMPTY(&h->turns) && !h->paused);
}

/*
 * Ends and requests take turns, since each end may take long and many connections may end together. Among requests peers take turns, and so do the connections
 * of a peer.
 */
static struct conn *hub_next(struct hub *h)
{
	struct share *share = h->paused ? NULL : TAILQ_FIRST(&h->turns);
	struct conn *c = TAILQ_FIRST(&h->ended);

	h->after_end = c && !(share && h->after_end);
	if (!h->after_end) {
		c = TAILQ_FIRST(&share->waiting);
		TAILQ_REMOVE(&h->turns, share, in_turns);
		TAILQ_INSERT_TAIL(&h->turns, share, in_turns);
	}
	conn_leave_turns(c);
	return c;
}

static void hub_on_turn(evutil_socket_t fd, short what, void *context)
{
	struct hub *h = context;
	struct instant end = instant_add(clock_boottime(), TURNS_US);

	(void)fd, (void)what;
	while (hub_has_turns(h)) {
		conn_take_turn(hub_next(h));
		if (hub_has_turns(h) && (event_base_got_break(h->base) || !instant_before(clock_boottime(), end))) {
			event_active(h->run_turns, EV_TIMEOUT, 1);
			event_base_loopbreak(h->base);
			return;
		}
	}
}

static void hub_deadline(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	closing_expire(context);
}

void hub_flush(struct hub *h, struct instant end)
{
	struct conn *c;

	for (unsigned n = 1; (c = TAILQ_FIRST(&h->dirty)); n++) {
		TAILQ_REMOVE(&h->dirty, c, dirty);
		c->is_dirty = false;
		conn_flush(c);
		if (n % HUB_FLUSH_LOOK == 0 && !TAILQ_EMPTY(&h->dirty) && !instant_before(clock_boottime(), end)) {
			event_active(h->run_turns, EV_TIMEOUT, 1); /* the next pass comes at once */
			return;
		}
	}
}

/* --- begin and end ------------------------------------------------------------------------------------------------- */

int hub_init(struct hub *h, struct event_base *base, const struct net_conf *conf, const struct net_sink *sink)
{
	int r;

	*h = (struct hub){.base = base, .conf = *conf, .sink = *sink};
	r = sockets_init(h, conn_ready);
	if (r < 0)
		return r;
	h->run_turns = event_new(base, -1, 0, hub_on_turn, h);
	h->deadline = evtimer_new(base, hub_deadline, h);
	if (!h->run_turns || !h->deadline || handshake_init(h) < 0) {
		sockets_release(h);
		if (h->run_turns)
			event_free(h->run_turns);
		return -ENOMEM;
	}
	slots_init(&h->slots, conf->first_slot, conf->reserved_slots);
	shares_init(&h->shares, geteuid());
	pool_init(&h->conns, sizeof(struct conn));
	pool_init(&h->secure_conns, sizeof(struct secure_conn));
	TAILQ_INIT(&h->dirty);
	TAILQ_INIT(&h->ended);
	TAILQ_INIT(&h->turns);
	TAILQ_INIT(&h->closing);
	h->scratch = mem_grow(NULL, conf->line_max + HUB_READ, 1);
	return 0;
}

void hub_release(struct hub *h)
{
	struct conn *c;

	assert(!h->current);
	while ((c = slots_any(&h->slots)))
		conn_free(c);
	while (closing_evict(h))
		;
	sockets_release(h);
	handshake_release(h);
	event_free(h->run_turns);
	event_free(h->deadline);
	slots_release(&h->slots);
	shares_release(&h->shares);
	pool_release(&h->conns);
	pool_release(&h->secure_conns);
	hub_buf_release(h);
	free(h->scratch);
}
