/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One socket. Output of a loop pass is first tried with one send(2); a bufferevent writes the rest, reads input and reports events.
 * The kernel has taken all bytes that were handed over, less those that wait in the bufferevent. When the connection breaks, that
 * count decides which calls are REFUSED and which UNKNOWN.
 */
#include "daemon/redis/link.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LATE_REPLIES_US (20 * MSEC) /* time to read replies that arrived while the daemon was stopped, before a stall counts */

enum link_state {
	LINK_CLOSED,    /* no socket */
	LINK_HANDSHAKE, /* connecting, or in the handshake; the timer is the connect timeout */
	LINK_READY,     /* takes calls; the timer checks for stalls and silence */
	LINK_BROKEN,    /* the sink got `broken`; waits for link_close */
};

struct link {
	struct event_base *base;
	const struct link_conf *conf;
	struct link_sink sink;
	enum link_state state;
	struct stream stream;
	struct bufferevent *bev;
	struct event *timer;
	int error;    /* errno of the last failed send(2); the kernel reports it only once */
	bool suspect; /* a stall was seen; if it is still there after LATE_REPLIES_US, the link breaks */
};

/* --- sending --------------------------------------------------------------------------------------------------------- */

static size_t link_try_send(struct link *l, const char *p, size_t n)
{
	ssize_t done;

	if (l->state != LINK_READY || evbuffer_get_length(bufferevent_get_output(l->bev)))
		return 0;
	done = send(bufferevent_getfd(l->bev), p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (done < 0 && errno != EAGAIN && errno != EINTR)
		l->error = errno; /* the bufferevent meets it as well, and reports it */
	return done < 0 ? 0 : (size_t)done;
}

static void link_hand_over(struct link *l)
{
	const char *p = buf_begin(&l->stream.out);
	size_t n = buf_length(&l->stream.out), done;

	if (!n)
		return;
	done = link_try_send(l, p, n);
	if (done < n && bufferevent_write(l->bev, p + done, n - done) < 0)
		mem_exhausted();
	stream_consume(&l->stream);
}

void link_call(struct link *l, const struct call *call, uint64_t hash)
{
	stream_call(&l->stream, call, hash);
}

void link_flush(struct link *l)
{
	if (l->state != LINK_READY || TAILQ_EMPTY(&l->stream.pending))
		return;
	stream_flush(&l->stream, clock_boottime());
	link_hand_over(l);
}

/* --- timers ---------------------------------------------------------------------------------------------------------- */

static void link_arm(struct link *l, int64_t us)
{
	struct timeval tv = {.tv_sec = us / SEC, .tv_usec = us % SEC};

	if (evtimer_add(l->timer, &tv) < 0)
		mem_exhausted();
}

static void link_break(struct link *l, const char *reason)
{
	l->state = LINK_BROKEN;
	bufferevent_disable(l->bev, EV_READ | EV_WRITE);
	evtimer_del(l->timer);
	l->sink.broken(l->sink.context, reason);
}

static bool link_is_connected(const struct link *l)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);

	return getpeername(bufferevent_getfd(l->bev), (struct sockaddr *)&peer, &n) == 0;
}

/* How long the oldest command may still be without an answer. */
static int64_t link_patience(const struct link *l, struct instant now)
{
	struct instant oldest = stream_oldest(&l->stream);

	return oldest.us == INSTANT_NEVER.us ? l->conf->stall_us : instant_diff(instant_add(oldest, l->conf->stall_us), now);
}

/* Whether a PING is due: servers may cut idle connections. */
static bool link_is_silent(const struct link *l, struct instant now)
{
	return stream_oldest(&l->stream).us == INSTANT_NEVER.us && instant_diff(now, l->stream.last) >= l->conf->ping_us;
}

/* Commands sent while the timer runs need no earlier timer: they stall after stall_us at the earliest. */
static void link_watch(struct link *l, struct instant now)
{
	int64_t patience = link_patience(l, now), silence = instant_diff(instant_add(l->stream.last, l->conf->ping_us), now);

	if (silence <= 0)
		silence = l->conf->ping_us; /* a command is in flight, so no PING is due */
	link_arm(l, silence < patience ? silence : patience);
}

static void link_suspect(struct link *l)
{
	char reason[48];

	if (l->suspect) {
		(void)snprintf(reason, sizeof(reason), "no answer for %lld ms", (long long)(l->conf->stall_us / MSEC));
		link_break(l, reason);
		return;
	}
	l->suspect = true;
	link_arm(l, LATE_REPLIES_US);
}

static void link_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct link *l = context;
	struct instant now = clock_boottime();

	(void)fd, (void)what;
	if (l->state == LINK_HANDSHAKE) {
		link_break(l, link_is_connected(l) ? "handshake timed out" : "connect timed out");
		return;
	}
	if (link_patience(l, now) <= 0) {
		link_suspect(l);
		return;
	}
	l->suspect = false;
	if (link_is_silent(l, now)) {
		stream_ping(&l->stream, now);
		link_hand_over(l);
	}
	link_watch(l, now);
}

/* --- receiving ------------------------------------------------------------------------------------------------------- */

/* False: the link is broken, and may be closed already. */
static bool link_take(struct link *l, const void *p, size_t n)
{
	struct instant now = clock_boottime();
	const char *wrong = stream_take(&l->stream, p, n, now);

	if (wrong) {
		link_break(l, wrong);
		return false;
	}
	if (l->state == LINK_HANDSHAKE && l->stream.ready) {
		l->state = LINK_READY;
		link_watch(l, now);
		l->sink.ready(l->sink.context);
	}
	link_hand_over(l);
	return true;
}

/*
 * Reading begins only when the handshake is written. So a failed connect is reported by the write; libevent does not report
 * "connection refused" if the read meets it first.
 */
static void link_on_written(struct bufferevent *bev, void *context)
{
	const struct link *l = context;

	if (l->state == LINK_HANDSHAKE)
		bufferevent_enable(bev, EV_READ);
}

static void link_on_read(struct bufferevent *bev, void *context)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct link *l = context;
	size_t n;

	while ((n = evbuffer_get_contiguous_space(in))) {
		if (!link_take(l, evbuffer_pullup(in, (ssize_t)n), n))
			return;
		evbuffer_drain(in, n);
	}
}

/* A server that refuses a connection sends the reason before it closes. It is read even if a write noticed the end first. */
static bool link_take_rest(struct link *l)
{
	char rest[4096];
	ssize_t n;

	while ((n = recv(bufferevent_getfd(l->bev), rest, sizeof(rest), MSG_DONTWAIT)) > 0) {
		if (!link_take(l, rest, (size_t)n))
			return false;
	}
	return true;
}

static void link_on_event(struct bufferevent *bev, short what, void *context)
{
	struct link *l = context;
	int error = l->error ? l->error : EVUTIL_SOCKET_ERROR();

	(void)bev;
	if (what & BEV_EVENT_CONNECTED)
		return;
	if ((what & BEV_EVENT_WRITING) && !link_take_rest(l))
		return;
	if (what & BEV_EVENT_EOF)
		link_break(l, l->state == LINK_READY ? "closed by the server" : "closed by the server during the handshake");
	else
		link_break(l, strerror(error));
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

struct link *link_new(struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink)
{
	struct link *l = mem_alloc(sizeof(*l));

	l->base = base;
	l->conf = conf;
	l->sink = *sink;
	l->timer = evtimer_new(base, link_on_timer, l);
	if (!l->timer)
		mem_exhausted();
	stream_init(&l->stream, &conf->stream, node, &sink->script);
	return l;
}

static void link_hang_up(struct link *l)
{
	if (l->bev)
		bufferevent_free(l->bev);
	l->bev = NULL;
	evtimer_del(l->timer);
	l->state = LINK_CLOSED;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	link_hang_up(l);
	stream_release(&l->stream);
	event_free(l->timer);
	free(l);
}

static void socket_set(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof(value)); /* failure is harmless */
}

static void socket_set_tcp(int fd, int64_t stall_us)
{
	socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	socket_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
	socket_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
	socket_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
	socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(stall_us / MSEC));
}

static int socket_dial(const struct sockaddr *address, socklen_t n, int64_t stall_us)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	if (address->sa_family != AF_UNIX)
		socket_set_tcp(fd, stall_us);
	if (connect(fd, address, n) < 0 && errno != EINPROGRESS) {
		error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int link_dial(struct link *l, const struct sockaddr *address, socklen_t n)
{
	int fd = socket_dial(address, n, l->conf->stall_us);

	if (fd < 0)
		return fd;
	l->bev = bufferevent_socket_new(l->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!l->bev)
		mem_exhausted();
	bufferevent_setcb(l->bev, link_on_read, link_on_written, link_on_event, l);
	l->error = 0;
	l->suspect = false;
	l->state = LINK_HANDSHAKE;
	stream_open(&l->stream, clock_boottime());
	link_hand_over(l);
	bufferevent_enable(l->bev, EV_WRITE);
	link_arm(l, l->conf->connect_timeout_us);
	return 0;
}

void link_close(struct link *l, const char *reason)
{
	uint64_t taken = l->bev ? l->stream.handed - evbuffer_get_length(bufferevent_get_output(l->bev)) : 0;

	link_hang_up(l);
	stream_close(&l->stream, taken, reason);
}
