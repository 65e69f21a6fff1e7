/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept loop. It must never spin when accept(2) fails, nor delay existing sessions. */
#include "daemon/net/acceptor.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/net/address.h"
#include "daemon/net/admission.h"
#include "daemon/net/closing.h"
#include "daemon/net/handshakes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOG_EVERY        (10 * SEC)
#define PAUSE_FIRST      (100 * MSEC)
#define PAUSE_LAST       (1 * SEC)

struct accept_source {
	SLIST_ENTRY(accept_source) link;
	struct acceptor *acceptor;
	struct listener listener;
	bool tls;
	int trouble; /* why its socket file is missing, as the log says */
	struct event *event;
};

static int reserve_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* --- refusing ------------------------------------------------------------------------------------------------------ */

/* Accepts one waiting connection with the reserved descriptor, and refuses it. The descriptor is reserved again afterwards. */
static void refuse_waiting(struct acceptor *a, int listening)
{
	struct rlimit limit = {0};
	char line[96];
	int fd, n;

	if (a->reserve < 0)
		return;
	close(a->reserve);
	fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		getrlimit(RLIMIT_NOFILE, &limit);
		n = snprintf(line, sizeof(line), "ERR LIMIT descriptors=%llu no descriptor left for another connection\n",
			     (unsigned long long)limit.rlim_cur);
		a->hub->counts.refused++;
		closing_send(fd, NULL, line, (size_t)n);
	}
	a->reserve = reserve_open();
}

/* --- pausing ------------------------------------------------------------------------------------------------------- */

/* Logs at most once per LOG_EVERY, because a shortage may come and go many times a second. */
static void accept_log(struct acceptor *a, int error)
{
	struct instant now = clock_boottime();

	if (instant_before(now, a->quiet_until))
		return;
	a->quiet_until = instant_add(now, LOG_EVERY);
	log_event(LOG_WARN, "accept-paused", "error=%s sessions=%u", strerrorname_np(error), a->hub->slots.live);
}

static void accept_pause(struct acceptor *a, int listening, int error)
{
	const struct timeval t = {.tv_sec = a->pause_us / SEC, .tv_usec = a->pause_us % SEC};
	struct accept_source *s;

	accept_log(a, error);
	if (a->pause_us >= PAUSE_LAST && (error == EMFILE || error == ENFILE))
		refuse_waiting(a, listening);
	SLIST_FOREACH(s, &a->sources, link)
	event_del(s->event);
	a->hub->counts.pauses++;
	a->paused = true;
	evtimer_add(a->retry, &t);
	a->pause_us = a->pause_us * 2 < PAUSE_LAST ? a->pause_us * 2 : PAUSE_LAST;
}

static void accept_retry(evutil_socket_t fd, short what, void *context)
{
	const struct timeval again = {.tv_sec = 1};
	struct acceptor *a = context;
	struct accept_source *s;
	int r = 0;

	(void)fd, (void)what;
	a->paused = false;
	if (a->reserve < 0)
		a->reserve = reserve_open();
	if (a->hub->paused)
		return;
	SLIST_FOREACH(s, &a->sources, link)
	r |= event_add(s->event, NULL);
	/* A listening socket that libevent could not add for lack of memory is tried again. */
	if (r)
		evtimer_add(a->retry, &again);
}

void acceptor_pause(struct acceptor *a, bool on)
{
	struct accept_source *s;

	SLIST_FOREACH(s, &a->sources, link)
	event_del(s->event);
	if (!on)
		accept_retry(-1, 0, a);
}

/* --- accepting ----------------------------------------------------------------------------------------------------- */

/* Makes room for one more: connections that are closing anyway go first, then handshakes. */
static void accept_one(struct accept_source *s, int fd, const struct sockaddr *address)
{
	struct hub *h = s->acceptor->hub;
	struct peer peer;

	s->acceptor->pause_us = PAUSE_FIRST;
	while (hub_is_full(h) && (closing_evict(h) || handshake_evict(h)))
		;
	address_peer(fd, address, &peer);
	peer.is_admin = admin_is_peer(fd, &peer, h->conf.admin_group);
	if (s->tls)
		handshake_begin(h, fd, &peer);
	else
		admission_take(h, fd, &peer, NULL);
}

/* accept(2) fails for lack of a descriptor even if no connection waits. */
static bool somebody_waits(int listening)
{
	struct pollfd p = {.fd = listening, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* True: go on accepting, the error concerns this connection only (accept(2)). Any other error would recur at once. */
static bool accept_failed(struct acceptor *a, int listening, int error)
{
	switch (error) {
	case EAGAIN:
		return false;
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case EPERM:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
		return true;
	case EMFILE:
	case ENFILE:
		if (!somebody_waits(listening))
			return false;
		if (closing_evict(a->hub) || handshake_evict(a->hub))
			return true;
		break;
	}
	accept_pause(a, listening, error);
	return false;
}

static void accept_ready(evutil_socket_t listening, short what, void *context)
{
	struct accept_source *s = context;
	struct acceptor *a = s->acceptor;
	int i;

	(void)what;
	for (i = 0; i < ACCEPTS_PER_PASS; i++) {
		struct sockaddr_storage address = {0};
		socklen_t n = sizeof(address);
		int fd = accept4(listening, (struct sockaddr *)&address, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			accept_one(s, fd, (const struct sockaddr *)&address);
		else if (!accept_failed(a, listening, errno))
			return;
	}
}

/* --- socket files that somebody removes ---------------------------------------------------------------------------- */

static void source_trouble(struct accept_source *s, const char *path, int r, const char *why)
{
	if (r != s->trouble)
		log_event(LOG_ERROR, "listen", "socket=%s error=\"%s\" note=\"nobody can connect there; it is tried again\"", path, why);
	s->trouble = r;
}

/* Accepts clients that connected before the file was removed. */
static void source_drain(struct accept_source *s)
{
	for (unsigned i = 0; i < SOMAXCONN / ACCEPTS_PER_PASS && !s->acceptor->paused && somebody_waits(s->listener.fd); i++)
		accept_ready(s->listener.fd, EV_READ, s);
}

static void source_renew(struct acceptor *a, struct accept_source *s)
{
	struct listener l;
	struct event *event;
	int r = listener_unix(s->listener.path, &a->hub->conf.unix_access, &l);

	if (r < 0) {
		source_trouble(s, s->listener.path, r, r == -ENOTSOCK ? "a file that is no socket is there now: remove it" : strerror(-r));
		return;
	}
	event = event_new(a->hub->base, l.fd, EV_READ | EV_PERSIST, accept_ready, s);
	if (!event) {
		listener_release(&l);
		return;
	}
	source_drain(s);
	event_free(s->event);
	listener_release(&s->listener);
	s->event = event;
	s->listener = l;
	if (!a->paused)
		event_add(s->event, NULL);
	s->trouble = 0;
	log_event(LOG_WARN, "listen", "socket=%s note=\"somebody had removed the file: it is made again\"", l.path);
}

/* The socket file of a passed socket belongs to the service manager. */
static void source_look_passed(struct accept_source *s)
{
	struct sockaddr_un address = {0};
	socklen_t n = sizeof(address);
	struct stat st;

	if (getsockname(s->listener.fd, (struct sockaddr *)&address, &n) || address.sun_family != AF_UNIX || address.sun_path[0] != '/')
		return;
	if (lstat(address.sun_path, &st))
		source_trouble(s, address.sun_path, -errno, "the file was removed: systemctl restart redlockd.socket makes it again");
	else if (!S_ISSOCK(st.st_mode))
		source_trouble(s, address.sun_path, -ENOTSOCK, "a file that is no socket is there now: remove it, and systemctl restart redlockd.socket");
	else
		s->trouble = 0;
}

void acceptor_look(struct acceptor *a)
{
	struct accept_source *s;

	SLIST_FOREACH(s, &a->sources, link) {
		if (!s->listener.path)
			source_look_passed(s);
		else if (!listener_is_there(&s->listener))
			source_renew(a, s);
		else
			s->trouble = 0;
	}
}

unsigned acceptor_sockets_lost(const struct acceptor *a)
{
	const struct accept_source *s;
	unsigned n = 0;

	SLIST_FOREACH(s, &a->sources, link)
		n += s->trouble != 0;
	return n;
}

/* --- begin and end ------------------------------------------------------------------------------------------------- */

int acceptor_init(struct acceptor *a, struct hub *h)
{
	*a = (struct acceptor){.hub = h, .pause_us = PAUSE_FIRST};
	SLIST_INIT(&a->sources);
	a->retry = evtimer_new(h->base, accept_retry, a);
	if (!a->retry)
		return -ENOMEM;
	a->reserve = reserve_open();
	return 0;
}

static void source_free(struct accept_source *s)
{
	if (s->event)
		event_free(s->event);
	listener_release(&s->listener);
	free(s);
}

int acceptor_add(struct acceptor *a, const struct listener *l, bool tls)
{
	struct accept_source *s = mem_alloc(sizeof(*s));

	s->acceptor = a;
	s->listener = *l;
	s->tls = tls;
	s->event = event_new(a->hub->base, l->fd, EV_READ | EV_PERSIST, accept_ready, s);
	if (!s->event || (!a->paused && !a->hub->paused && event_add(s->event, NULL))) {
		source_free(s);
		return -ENOMEM;
	}
	SLIST_INSERT_HEAD(&a->sources, s, link);
	return 0;
}

bool acceptor_give(struct acceptor *a, struct listener *ret_listener, bool *ret_tls)
{
	struct accept_source *s = SLIST_FIRST(&a->sources);

	if (!s)
		return false;
	SLIST_REMOVE_HEAD(&a->sources, link);
	*ret_listener = s->listener;
	*ret_tls = s->tls;
	event_free(s->event);
	free(s);
	return true;
}

void acceptor_stop(struct acceptor *a)
{
	struct accept_source *s;

	evtimer_del(a->retry);
	a->paused = false;
	inherited_release(&a->inherited);
	while ((s = SLIST_FIRST(&a->sources))) {
		SLIST_REMOVE_HEAD(&a->sources, link);
		source_free(s);
	}
}

void acceptor_release(struct acceptor *a)
{
	acceptor_stop(a);
	event_free(a->retry);
	if (a->reserve >= 0)
		close(a->reserve);
}
