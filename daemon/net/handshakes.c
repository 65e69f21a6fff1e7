/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes in the order in which they began. Their time ends in the same order, so one timer serves all. */
#include "daemon/net/handshakes.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/net/admission.h"
#include "daemon/net/closing.h"
#include "tls/context.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_EVERY   (1 * SEC)
#define SUBJECT_MAX 257 /* bytes, with its NUL; a longer subject counts as none */

struct handshake {
	struct paced paced; /* once a session owns them, its tls is NULL, and fd -1 */
	struct hub *hub;
	TAILQ_ENTRY(handshake) link; /* in hub.handshakes.all */
	struct peer peer;
};

static struct instant deadline_of(const struct handshake *o)
{
	return instant_add(o->paced.begun, HANDSHAKE_US);
}

/* --- the list -------------------------------------------------------------------------------------------------------- */

static void deadline_set(struct hub *h, int64_t us)
{
	const struct timeval t = {.tv_sec = us / SEC, .tv_usec = us % SEC};

	evtimer_add(h->handshakes.deadline, &t);
}

static void handshake_free(struct handshake *o)
{
	struct hub *h = o->hub;

	paced_end(&o->paced);
	TAILQ_REMOVE(&h->handshakes.all, o, link);
	h->handshakes.n--;
	tls_free(o->paced.tls);
	if (o->paced.fd >= 0)
		close(o->paced.fd);
	free(o);
}

/* Strangers can cause these. So there is at most one line per LOG_EVERY, with the number of the others. */
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

bool handshake_evict(struct hub *h)
{
	struct paced *oldest = pacing_oldest(&h->handshakes.pacing);

	if (!oldest)
		return false;
	handshake_fail(container_of(oldest, struct handshake, paced), "given up for a newer one, since there are too many");
	return true;
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	struct hub *h = context;
	struct instant now = clock_boottime();
	struct handshake *o;

	(void)fd, (void)what;
	for (unsigned n = 0; (o = TAILQ_FIRST(&h->handshakes.all)) && n < CLOSING_AT_ONCE && !instant_before(now, deadline_of(o)); n++)
		handshake_fail(o, "not done in 5 s");
	if (o)
		deadline_set(h, instant_before(now, deadline_of(o)) ? instant_diff(deadline_of(o), now) : 0);
}

/* --- its end --------------------------------------------------------------------------------------------------------- */

static void handshake_done(struct handshake *o)
{
	struct hub *h = o->hub;
	struct peer peer = o->peer;
	struct ssl_st *tls = o->paced.tls;
	char subject[SUBJECT_MAX];
	int fd = o->paced.fd;

	if (tls_subject(tls, subject, sizeof(subject)))
		peer.subject = subject;
	o->paced.tls = NULL;
	o->paced.fd = -1;
	handshake_free(o);
	admission_take(h, fd, &peer, tls);
}

/* The peer has already got the alert with the cause. To close with unread input would send a reset, and the peer would lose that alert. */
static void handshake_refuse(struct handshake *o, const char *why)
{
	struct hub *h = o->hub;
	int fd = o->paced.fd;

	o->paced.fd = -1;
	handshake_fail(o, why);
	admission_refuse(h, fd, NULL, "", 0);
}

static void on_over(struct paced *paced, const char *why)
{
	struct handshake *o = container_of(paced, struct handshake, paced);

	if (why)
		handshake_refuse(o, why);
	else
		handshake_done(o);
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

void handshake_begin(struct hub *h, int fd, const struct peer *peer)
{
	struct ssl_st *tls = h->handshakes.context ? tls_serve(h->handshakes.context, fd) : NULL;
	char name[PEER_ORIGIN_MAX];
	struct handshake *o;

	if (!tls) {
		close(fd);
		return;
	}
	if (h->handshakes.n >= HANDSHAKE_MAX)
		handshake_evict(h);
	o = mem_alloc(sizeof(*o));
	o->hub = h;
	o->peer = *peer;
	o->paced.tls = tls;
	o->paced.over = on_over;
	if (TAILQ_EMPTY(&h->handshakes.all))
		deadline_set(h, HANDSHAKE_US);
	TAILQ_INSERT_TAIL(&h->handshakes.all, o, link);
	h->handshakes.n++;
	paced_begin(&o->paced, &h->handshakes.pacing, fd, name, peer_origin(peer->is_unix, peer->uid, peer->address, strlen(peer->address), name));
}

int handshake_init(struct hub *h)
{
	TAILQ_INIT(&h->handshakes.all);
	h->handshakes.deadline = evtimer_new(h->base, on_deadline, h);
	return h->handshakes.deadline ? pacing_init(&h->handshakes.pacing, h->base) : -ENOMEM;
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
	pacing_release(&h->handshakes.pacing);
	if (h->handshakes.deadline)
		event_free(h->handshakes.deadline);
	tls_context_free(h->handshakes.context);
}
