/* SPDX-License-Identifier: BSD-2-Clause */
/* See pacing.h. A handshake whose socket is ready waits in a queue. It is watched again after its step. */
#include "daemon/net/pacing.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>

#define PASS_US INT64_C(200)
#define STEP_US (1 * MSEC)
#define REST_US (40 * MSEC) /* the longest rest: others may have used the processor during a step */

/* A peer that has handshakes under way. */
struct paced_peer {
	TAILQ_ENTRY(paced_peer) link;
	TAILQ_ENTRY(paced_peer) turn; /* in pacing.ready */
	TAILQ_HEAD(, paced) own;      /* oldest first */
	TAILQ_HEAD(, paced) ready;    /* those whose sockets are ready */
	unsigned n;
	size_t name_n;
	char name[PEER_ORIGIN_MAX];
};

/* --- peers ----------------------------------------------------------------------------------------------------------- */

static struct paced_peer *peer_of(struct pacing *all, const char *name, size_t n)
{
	struct paced_peer *p;

	TAILQ_FOREACH(p, &all->peers, link)
		if (p->name_n == n && memcmp(p->name, name, n) == 0)
			return p;
	p = mem_alloc(sizeof(*p));
	TAILQ_INIT(&p->own);
	TAILQ_INIT(&p->ready);
	p->name_n = n;
	memcpy(p->name, name, n);
	TAILQ_INSERT_TAIL(&all->peers, p, link);
	return p;
}

static void paced_queue(struct paced *o)
{
	if (TAILQ_EMPTY(&o->peer->ready))
		TAILQ_INSERT_TAIL(&o->all->ready, o->peer, turn);
	TAILQ_INSERT_TAIL(&o->peer->ready, o, queued);
	o->is_queued = true;
}

static void paced_unqueue(struct paced *o)
{
	TAILQ_REMOVE(&o->peer->ready, o, queued);
	o->is_queued = false;
	if (TAILQ_EMPTY(&o->peer->ready))
		TAILQ_REMOVE(&o->all->ready, o->peer, turn);
}

/* Of two with the same number, the one whose oldest is older. */
static bool peer_goes_before(const struct paced_peer *a, const struct paced_peer *b)
{
	return a->n != b->n ? a->n > b->n : instant_before(TAILQ_FIRST(&a->own)->begun, TAILQ_FIRST(&b->own)->begun);
}

struct paced *pacing_oldest(const struct pacing *all)
{
	struct paced_peer *p, *most = NULL;

	TAILQ_FOREACH(p, &all->peers, link)
		if (!most || peer_goes_before(p, most))
			most = p;
	return most ? TAILQ_FIRST(&most->own) : NULL;
}

/* --- steps ----------------------------------------------------------------------------------------------------------- */

/* If a rest is under way, the turn comes after it. */
static void turn_soon(struct pacing *all)
{
	if (!event_pending(all->turn, EV_TIMEOUT, NULL))
		event_active(all->turn, EV_TIMEOUT, 1);
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
	struct paced *o = context;

	(void)fd, (void)what;
	paced_queue(o);
	turn_soon(o->all);
}

/* Once. A socket that cannot be watched ends by the timeout of its owner. */
static void paced_watch(struct paced *o, short what)
{
	if (!event_assign(&o->event, o->all->base, o->fd, what, on_ready, o))
		(void)event_add(&o->event, NULL);
}

static void paced_step(struct paced *o)
{
	char why[256] = "";
	enum tls_shake how = tls_shake(o->tls, why, sizeof(why));

	if (how == TLS_READ || how == TLS_WRITE) {
		paced_watch(o, how == TLS_READ ? EV_READ : EV_WRITE);
		return;
	}
	paced_end(o);
	o->over(o, how == TLS_DONE ? NULL : why);
}

static struct paced *pacing_next(struct pacing *all)
{
	struct paced_peer *p = TAILQ_FIRST(&all->ready);

	if (!p)
		return NULL;
	TAILQ_REMOVE(&all->ready, p, turn);
	TAILQ_INSERT_TAIL(&all->ready, p, turn);
	return TAILQ_FIRST(&p->ready);
}

static void on_turn(evutil_socket_t fd, short what, void *context)
{
	struct pacing *all = context;
	struct instant now = clock_boottime(), end = instant_add(now, PASS_US);
	struct paced *o;

	(void)fd, (void)what;
	while (!all->paused && (o = pacing_next(all))) {
		struct instant before = now;
		int64_t took;

		paced_unqueue(o);
		paced_step(o);
		now = clock_boottime();
		took = instant_diff(now, before);
		if (took > STEP_US) {
			const struct timeval rest = {.tv_usec = 3 * took < REST_US ? 3 * took : REST_US};

			event_base_update_cache_time(all->base); /* the rest begins now */
			evtimer_add(all->turn, &rest);
			return;
		}
		if (!TAILQ_EMPTY(&all->ready) && !instant_before(now, end)) {
			turn_soon(all);
			event_base_loopbreak(all->base);
			return;
		}
	}
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

void paced_begin(struct paced *o, struct pacing *all, int fd, const char *peer, size_t n)
{
	o->all = all;
	o->fd = fd;
	o->begun = clock_boottime();
	o->peer = peer_of(all, peer, n);
	TAILQ_INSERT_TAIL(&o->peer->own, o, own);
	o->peer->n++;
	paced_watch(o, EV_READ);
}

void paced_end(struct paced *o)
{
	struct paced_peer *p = o->peer;

	if (!p)
		return;
	if (o->is_queued)
		paced_unqueue(o);
	event_del(&o->event);
	TAILQ_REMOVE(&p->own, o, own);
	o->peer = NULL;
	if (--p->n > 0)
		return;
	TAILQ_REMOVE(&o->all->peers, p, link);
	mem_free(p);
}

void pacing_pause(struct pacing *all, bool on)
{
	all->paused = on;
	if (!on)
		turn_soon(all);
}

int pacing_init(struct pacing *all, struct event_base *base)
{
	all->base = base;
	TAILQ_INIT(&all->ready);
	TAILQ_INIT(&all->peers);
	all->turn = event_new(base, -1, 0, on_turn, all);
	return all->turn ? 0 : -ENOMEM;
}

void pacing_release(struct pacing *all)
{
	if (all->turn)
		event_free(all->turn);
}
