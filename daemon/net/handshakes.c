/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshakes in the order in which they began, which is the order in which their time is over: one timer serves all. One whose socket is ready is queued, and
 * not watched until its step was made.
 */
#include "daemon/net/handshakes.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/net/admission.h"
#include "daemon/net/closing.h"
#include "tls/context.h"
#include "tls/tls.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_EVERY   (1 * SEC)
#define SUBJECT_MAX 257 /* bytes, with its NUL; a longer subject is none */

/* A peer, as peer_origin() tells them apart, that has handshakes under way. */
struct shakers {
	TAILQ_ENTRY(shakers) link;
	TAILQ_ENTRY(shakers) turn; /* in hub.handshakes.ready */
	struct handshake_list own; /* oldest first */
	struct handshake_list ready; /* whose sockets are */
	unsigned n;
	size_t name_n;
	char name[PEER_ORIGIN_MAX];
};

struct handshake {
	struct hub *hub;
	struct shakers *of;
	TAILQ_ENTRY(handshake) in_own;
	struct event event;
	TAILQ_ENTRY(handshake) link;   /* in hub.handshakes.all */
	TAILQ_ENTRY(handshake) queued; /* in shakers.ready */
	bool is_queued;
	struct instant deadline;
	struct ssl_st *tls; /* NULL: a session has it */
	int fd;             /* -1: a session has it */
	struct peer peer;
};

/* --- the list -------------------------------------------------------------------------------------------------------- */

static void deadline_set(struct hub *h, int64_t us)
{
	const struct timeval t = {.tv_sec = us / SEC, .tv_usec = us % SEC};

	evtimer_add(h->handshakes.deadline, &t);
}

static void shakers_join(struct handshake *o)
{
	struct handshakes *all = &o->hub->handshakes;
	char name[PEER_ORIGIN_MAX];
	size_t n = peer_origin(o->peer.is_unix, o->peer.uid, o->peer.address, strlen(o->peer.address), name);
	struct shakers *s;

	TAILQ_FOREACH(s, &all->peers, link)
		if (s->name_n == n && memcmp(s->name, name, n) == 0)
			break;
	if (!s) {
		s = mem_alloc(sizeof(*s));
		TAILQ_INIT(&s->own);
		TAILQ_INIT(&s->ready);
		s->name_n = n;
		memcpy(s->name, name, n);
		TAILQ_INSERT_TAIL(&all->peers, s, link);
	}
	TAILQ_INSERT_TAIL(&s->own, o, in_own);
	s->n++;
	o->of = s;
}

static void shakers_leave(struct handshake *o)
{
	struct shakers *s = o->of;

	TAILQ_REMOVE(&s->own, o, in_own);
	if (--s->n > 0)
		return;
	TAILQ_REMOVE(&o->hub->handshakes.peers, s, link);
	mem_free(s);
}

static void handshake_queue(struct handshake *o)
{
	if (TAILQ_EMPTY(&o->of->ready))
		TAILQ_INSERT_TAIL(&o->hub->handshakes.ready, o->of, turn);
	TAILQ_INSERT_TAIL(&o->of->ready, o, queued);
	o->is_queued = true;
}

static void handshake_unqueue(struct handshake *o)
{
	TAILQ_REMOVE(&o->of->ready, o, queued);
	o->is_queued = false;
	if (TAILQ_EMPTY(&o->of->ready))
		TAILQ_REMOVE(&o->hub->handshakes.ready, o->of, turn);
}

static void handshake_free(struct handshake *o)
{
	struct hub *h = o->hub;

	if (o->is_queued)
		handshake_unqueue(o);
	shakers_leave(o);
	TAILQ_REMOVE(&h->handshakes.all, o, link);
	h->handshakes.n--;
	event_del(&o->event);
	tls_free(o->tls);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

/* Strangers cause these, so there is one line in LOG_EVERY at most, which counts the others. */
static void handshake_fail(struct handshake *o, const char *why)
{
	struct handshakes *all = &o->hub->handshakes;
	struct instant now = clock_boottime();
	char quoted[320];

	all->failed++;
	if (!instant_before(now, all->quiet_until)) {
		log_event(LOG_INFO, "tls-handshake", "peer=%s error=%s failed=%llu", o->peer.address, log_quote(why, quoted, sizeof(quoted)),
		          (unsigned long long)all->failed);
		all->quiet_until = instant_add(now, LOG_EVERY);
		all->failed = 0;
	}
	handshake_free(o);
}

/* Of two that have as many, the one whose oldest is older. */
static bool shakers_go_before(const struct shakers *a, const struct shakers *b)
{
	return a->n != b->n ? a->n > b->n : instant_before(TAILQ_FIRST(&a->own)->deadline, TAILQ_FIRST(&b->own)->deadline);
}

bool handshake_evict(struct hub *h)
{
	struct shakers *s, *most = NULL;

	TAILQ_FOREACH(s, &h->handshakes.peers, link)
		if (!most || shakers_go_before(s, most))
			most = s;
	if (!most)
		return false;
	handshake_fail(TAILQ_FIRST(&most->own), "given up for a newer one, since there are too many");
	return true;
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	struct hub *h = context;
	struct instant now = clock_boottime();
	struct handshake *o;

	(void)fd, (void)what;
	for (unsigned n = 0; (o = TAILQ_FIRST(&h->handshakes.all)) && n < CLOSING_AT_ONCE && !instant_before(now, o->deadline); n++)
		handshake_fail(o, "not done in 5 s");
	if (o)
		deadline_set(h, instant_before(now, o->deadline) ? instant_diff(o->deadline, now) : 0);
}

/* --- steps ----------------------------------------------------------------------------------------------------------- */

static void handshake_watch(struct handshake *o, short what);

static void handshake_done(struct handshake *o)
{
	struct hub *h = o->hub;
	struct peer peer = o->peer;
	struct ssl_st *tls = o->tls;
	char subject[SUBJECT_MAX];
	int fd = o->fd;

	if (tls_subject(tls, subject, sizeof(subject)))
		peer.subject = subject;
	o->tls = NULL;
	o->fd = -1;
	handshake_free(o);
	admission_take(h, fd, &peer, tls);
}

/* The peer has been told what was wrong. A close with unread input would be a reset, and take that from it. */
static void handshake_refuse(struct handshake *o, const char *why)
{
	struct hub *h = o->hub;
	int fd = o->fd;

	o->fd = -1;
	handshake_fail(o, why);
	admission_refuse(h, fd, NULL, "", 0);
}

static void handshake_step(struct handshake *o)
{
	char why[256];

	switch (tls_shake(o->tls, why, sizeof(why))) {
	case TLS_DONE:
		handshake_done(o);
		break;
	case TLS_READ:
		handshake_watch(o, EV_READ);
		break;
	case TLS_WRITE:
		handshake_watch(o, EV_WRITE);
		break;
	case TLS_FAILED:
	case TLS_NOT_SPOKEN:
		handshake_refuse(o, why);
		break;
	}
}

/* While the turn is to come after a rest, it does. */
static void turn_soon(struct hub *h)
{
	if (!event_pending(h->handshakes.turn, EV_TIMEOUT, NULL))
		event_active(h->handshakes.turn, EV_TIMEOUT, 1);
}

static struct handshake *handshake_next(struct hub *h)
{
	struct shakers *s = TAILQ_FIRST(&h->handshakes.ready);

	if (!s)
		return NULL;
	TAILQ_REMOVE(&h->handshakes.ready, s, turn);
	TAILQ_INSERT_TAIL(&h->handshakes.ready, s, turn);
	return TAILQ_FIRST(&s->ready);
}

static void on_turn(evutil_socket_t fd, short what, void *context)
{
	struct hub *h = context;
	struct instant now = clock_boottime(), end = instant_add(now, HANDSHAKE_PASS_US);
	struct handshake *o;

	(void)fd, (void)what;
	while (!h->paused && (o = handshake_next(h))) {
		struct instant before = now;
		int64_t took;

		handshake_unqueue(o);
		handshake_step(o);
		now = clock_boottime();
		took = instant_diff(now, before);
		if (took > HANDSHAKE_STEP_US) {
			const struct timeval rest = {.tv_usec = 3 * took < HANDSHAKE_REST_US ? 3 * took : HANDSHAKE_REST_US};

			event_base_update_cache_time(h->base); /* the rest begins now */
			evtimer_add(h->handshakes.turn, &rest);
			return;
		}
		if (!TAILQ_EMPTY(&h->handshakes.ready) && !instant_before(now, end)) {
			turn_soon(h);
			event_base_loopbreak(h->base);
			return;
		}
	}
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
	struct handshake *o = context;

	(void)fd, (void)what;
	handshake_queue(o);
	turn_soon(o->hub);
}

/* Once. One that cannot be watched ends by its deadline. */
static void handshake_watch(struct handshake *o, short what)
{
	if (!event_assign(&o->event, o->hub->base, o->fd, what, on_ready, o))
		(void)event_add(&o->event, NULL);
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

void handshake_begin(struct hub *h, int fd, const struct peer *peer)
{
	struct ssl_st *tls = h->handshakes.context ? tls_serve(h->handshakes.context, fd) : NULL;
	struct handshake *o;

	if (!tls) {
		close(fd);
		return;
	}
	if (h->handshakes.n >= HANDSHAKE_MAX)
		handshake_evict(h);
	o = mem_alloc(sizeof(*o));
	o->hub = h;
	o->fd = fd;
	o->tls = tls;
	o->peer = *peer;
	o->deadline = instant_add(clock_boottime(), HANDSHAKE_US);
	shakers_join(o);
	if (TAILQ_EMPTY(&h->handshakes.all))
		deadline_set(h, HANDSHAKE_US);
	TAILQ_INSERT_TAIL(&h->handshakes.all, o, link);
	h->handshakes.n++;
	handshake_watch(o, EV_READ);
}

int handshake_init(struct hub *h)
{
	TAILQ_INIT(&h->handshakes.all);
	TAILQ_INIT(&h->handshakes.ready);
	TAILQ_INIT(&h->handshakes.peers);
	h->handshakes.turn = event_new(h->base, -1, 0, on_turn, h);
	h->handshakes.deadline = evtimer_new(h->base, on_deadline, h);
	return h->handshakes.turn && h->handshakes.deadline ? 0 : -ENOMEM;
}

void handshake_resume(struct hub *h)
{
	turn_soon(h);
}

void handshake_drop(struct hub *h)
{
	struct handshake *o;

	while ((o = TAILQ_FIRST(&h->handshakes.all)))
		handshake_free(o);
}

void handshake_release(struct hub *h)
{
	handshake_drop(h);
	if (h->handshakes.turn)
		event_free(h->handshakes.turn);
	if (h->handshakes.deadline)
		event_free(h->handshakes.deadline);
	tls_context_free(h->handshakes.context);
}
