/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One socket. The output of a loop pass is tried with one send(2). What the kernel does not take waits in the stream until the socket is writable. So the
 * stream counts the bytes that the kernel took. When the connection breaks, that count decides which calls are REFUSED and which UNKNOWN.
 */
#include "daemon/redis/link.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/redis/departure.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/loop.h"
#include "daemon/redis/socket.h"
#include "tls/context.h"
#include "tls/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES      4096        /* of one recv(2), one per pass of the loop: the answers of one server must not delay everything else */
#define READ_MOST       TLS_RECORD
#define LATE_REPLIES_US (20 * MSEC) /* a stall counts only after that time: it is for replies that arrived while the daemon was stopped */

enum link_state {
	LINK_CLOSED,    /* no socket */
	LINK_SHAKING,   /* connecting, or in the handshake of TLS; the timer is the connect timeout */
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
	struct departure departure;
	int fd;             /* -1: none */
	struct ssl_st *tls; /* NULL: plain */
	const char *name;
	int64_t cert_ends; /* see link_cert_ends */
	struct event *io; /* fd can be read or, if `full`, written; NULL: it is not watched */
	struct event *timer;
	bool full;    /* the kernel did not take all of stream.out: the rest waits until the socket is writable */
	int error;    /* errno of a failed send(2); 0: none. The kernel reports it only once */
	bool suspect; /* a stall was seen; the link breaks if it lasts for LATE_REPLIES_US */
};

/* --- sending --------------------------------------------------------------------------------------------------------- */

static void link_on_ready(evutil_socket_t fd, short what, void *context);

static void link_leave_socket(struct link *l)
{
	if (l->io)
		event_free(l->io);
	l->io = NULL;
}

/* For input, and for writability if l->full. */
static void link_watch_socket(struct link *l)
{
	short wants = EV_PERSIST | EV_READ | (l->full ? EV_WRITE : 0);

	if (l->io && event_get_events(l->io) == wants)
		return;
	link_leave_socket(l);
	l->io = event_new(l->base, l->fd, wants, link_on_ready, l);
	if (!l->io)
		mem_exhausted();
	(void)event_add(l->io, NULL); /* a link whose socket cannot be watched breaks by its timer */
}

static ssize_t link_put(struct link *l, const void *bytes, size_t n)
{
	return l->tls ? tls_send(l->tls, bytes, n) : send(l->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* TLS returns a whole record or nothing, so there must be room for one. */
static ssize_t link_get(struct link *l, char bytes[READ_MOST])
{
	return l->tls ? tls_recv(l->tls, bytes, READ_MOST) : recv(l->fd, bytes, READ_BYTES, MSG_DONTWAIT);
}

/* An error is kept for link_on_ready, which soon runs: a socket with an error is writable. */
static void link_send(struct link *l)
{
	size_t n = buf_length(&l->stream.out);
	ssize_t done = n ? link_put(l, buf_begin(&l->stream.out), n) : 0;

	if (done < 0 && errno != EAGAIN && errno != EINTR)
		l->error = errno;
	if (done > 0)
		stream_consume(&l->stream, (size_t)done);
	l->full = done < (ssize_t)n;
}

/* Tries to send what is in stream.out. */
static void link_hand_over(struct link *l)
{
	if (l->full || !buf_length(&l->stream.out))
		return;
	link_send(l);
	link_watch_socket(l);
}

void link_call(struct link *l, const struct call *call, uint64_t hash)
{
	departure_collect(&l->departure, call->kind == CALL_RELEASE);
	stream_call(&l->stream, call, hash);
}

bool link_flush(struct link *l, struct instant now, bool at_once)
{
	if (l->state != LINK_READY || TAILQ_EMPTY(&l->stream.pending))
		return false;
	if (!departure_is_due(&l->departure, now) && !at_once)
		return true;
	stream_flush(&l->stream, now);
	link_hand_over(l);
	return false;
}

bool link_waits(const struct link *l)
{
	return !TAILQ_EMPTY(&l->stream.flying);
}

/* --- timers ---------------------------------------------------------------------------------------------------------- */

static void link_break(struct link *l, enum defect defect, const char *reason)
{
	l->state = LINK_BROKEN;
	link_leave_socket(l);
	evtimer_del(l->timer);
	l->sink.broken(l->sink.context, defect, reason);
}

static bool link_is_connected(const struct link *l)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);

	return getpeername(l->fd, (struct sockaddr *)&peer, &n) == 0;
}

/* How much longer the oldest command may wait for its answer. */
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
	loop_arm(l->timer, silence < patience ? silence : patience);
}

static void link_suspect(struct link *l)
{
	char reason[48];

	if (l->suspect) {
		(void)snprintf(reason, sizeof(reason), "no answer for %lld ms", (long long)(l->conf->stall_us / MSEC));
		link_break(l, DEFECT_SILENT, reason);
		return;
	}
	l->suspect = true;
	loop_arm(l->timer, LATE_REPLIES_US);
}

static void link_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct link *l = context;
	struct instant now = clock_boottime();

	(void)fd, (void)what;
	if (l->state == LINK_SHAKING || l->state == LINK_HANDSHAKE) {
		if (link_is_connected(l))
			link_break(l, DEFECT_SILENT, "handshake timed out");
		else
			link_break(l, DEFECT_UNREACHED, "connect timed out");
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

/* The answer of a TLS server to input that is no TLS. */
static const char tls_alert[] = {0x15, 0x03};

/* False: the link is broken, and may be closed already. */
static bool link_take(struct link *l, const void *p, size_t n)
{
	struct instant now = clock_boottime();
	bool alert = l->state == LINK_HANDSHAKE && !l->tls && n >= sizeof(tls_alert) && !memcmp(p, tls_alert, sizeof(tls_alert));
	const char *wrong = stream_take(&l->stream, p, n, now);

	if (alert) {
		link_break(l, DEFECT_TLS_PORT, FAILURE_TLS_PORT);
		return false;
	}
	if (wrong) {
		link_break(l, l->stream.defect, wrong);
		return false;
	}
	if (l->state == LINK_HANDSHAKE && l->stream.ready) {
		l->state = LINK_READY;
		link_watch(l, now);
		l->sink.ready(l->sink.context);
		if (l->state != LINK_READY)
			return false;
	}
	link_hand_over(l);
	return true;
}

static void link_fail(struct link *l, int error)
{
	if (error == EPROTO)
		link_break(l, DEFECT_TLS, tls_reason());
	else
		link_break(l, failure_errno_defect(error), failure_errno(error));
}

/* A server that refuses a connection sends the reason before it closes, as bytes or as an alert. It is read even if a write noticed the end first. */
static void link_take_rest(struct link *l)
{
	char rest[READ_MOST];
	ssize_t n;

	while ((n = link_get(l, rest)) > 0) {
		if (!link_take(l, rest, (size_t)n))
			return;
	}
	link_fail(l, n < 0 && errno == EPROTO ? EPROTO : l->error);
}

static void link_read(struct link *l)
{
	char bytes[READ_MOST];
	ssize_t n = link_get(l, bytes);

	if (n > 0)
		(void)link_take(l, bytes, (size_t)n);
	else if (n == 0)
		link_break(l, DEFECT_CLOSED, l->state == LINK_READY ? "closed by the server" : "closed by the server during the handshake");
	else if (errno != EAGAIN && errno != EINTR && errno != EBUSY)
		link_fail(l, l->error && errno != EPROTO ? l->error : errno);
}

static void link_shake(struct link *l)
{
	char why[256];

	switch (tls_shake(l->tls, why, sizeof(why))) {
	case TLS_DONE:
		l->state = LINK_HANDSHAKE;
		l->cert_ends = tls_peer_ends(l->tls);
		l->full = false;
		link_hand_over(l);
		link_watch_socket(l);
		break;
	case TLS_FAILED:
		link_break(l, DEFECT_TLS, why);
		break;
	case TLS_NOT_SPOKEN:
		link_break(l, DEFECT_PLAIN_PORT, why);
		break;
	case TLS_READ:
		l->full = false;
		link_watch_socket(l);
		break;
	case TLS_WRITE:
		l->full = true;
		link_watch_socket(l);
		break;
	}
}

/* False: the link is broken, and may be closed already. */
static bool link_write(struct link *l)
{
	if (!l->error)
		link_send(l);
	if (l->error) {
		link_take_rest(l);
		return false;
	}
	link_watch_socket(l);
	return true;
}

static void link_on_ready(evutil_socket_t fd, short what, void *context)
{
	struct link *l = context;

	(void)fd;
	if (l->state == LINK_SHAKING) {
		link_shake(l);
		return;
	}
	if ((what & EV_WRITE) && !link_write(l))
		return;
	if (what & EV_READ)
		link_read(l);
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

struct link *link_new(struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink)
{
	struct link *l = mem_alloc(sizeof(*l));

	l->base = base;
	l->conf = conf;
	l->sink = *sink;
	l->fd = -1;
	l->cert_ends = INT64_MAX;
	l->timer = loop_timer(base, link_on_timer, l);
	stream_init(&l->stream, &conf->stream, node, &sink->script);
	return l;
}

void link_demand_master(struct link *l)
{
	l->stream.masters_only = true;
}

const char *link_run_id(const struct link *l)
{
	return l->stream.run_id;
}

int64_t link_cert_ends(const struct link *l)
{
	return l->cert_ends;
}

struct instant link_answered(const struct link *l)
{
	return l->stream.answered;
}

void link_expect(struct link *l, const char *name)
{
	l->name = name;
}

/* Closes the socket, if there is one; answers no calls. */
static void link_hang_up(struct link *l)
{
	link_leave_socket(l);
	tls_free(l->tls);
	l->tls = NULL;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
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

int link_dial(struct link *l, const struct sockaddr *address, socklen_t n)
{
	int fd = socket_dial(address, n, l->conf->stall_us);
	struct ssl_st *tls = NULL;

	if (fd < 0)
		return fd;
	if (l->conf->tls && l->name) {
		tls = tls_dial(l->conf->tls, fd, l->name);
		if (!tls) { /* a name that no certificate can have */
			close(fd);
			return -EINVAL;
		}
	}
	l->fd = fd;
	l->error = 0;
	l->full = true;
	l->suspect = false;
	departure_init(&l->departure);
	l->state = tls ? LINK_SHAKING : LINK_HANDSHAKE;
	l->tls = tls;
	stream_open(&l->stream, clock_boottime());
	link_watch_socket(l);
	loop_arm(l->timer, l->conf->connect_timeout_us);
	return 0;
}

void link_close(struct link *l, const char *reason)
{
	link_hang_up(l);
	stream_close(&l->stream, l->stream.handed, reason);
}

bool link_is_quiet(const struct link *l)
{
	return stream_is_quiet(&l->stream);
}

/* --- all links of a node ------------------------------------------------------------------------------------------------ */

void links_init(struct links *l, unsigned count, struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink)
{
	l->item = mem_alloc(count * sizeof(struct link *));
	for (l->count = 0; l->count < count; l->count++)
		l->item[l->count] = link_new(base, conf, node, sink);
}

void links_release(struct links *l)
{
	for (unsigned i = 0; i < l->count; i++)
		link_free(l->item[i]);
	free(l->item);
}

void links_expect(struct links *l, const char *name)
{
	for (unsigned i = 0; i < l->count; i++)
		link_expect(l->item[i], name);
}

void links_demand_master(struct links *l)
{
	for (unsigned i = 0; i < l->count; i++)
		link_demand_master(l->item[i]);
}

int links_dial(struct links *l, const struct endpoint *to)
{
	int r = 0;

	for (unsigned i = 0; i < l->count && r == 0; i++)
		r = link_dial(l->item[i], (const struct sockaddr *)&to->name, to->n);
	return r;
}

bool links_agree(const struct links *l)
{
	bool agree = true;

	for (unsigned i = 1; i < l->count; i++)
		agree &= !strcmp(link_run_id(l->item[i]), link_run_id(l->item[0]));
	return agree;
}

void links_close(struct links *l, const char *reason)
{
	for (unsigned i = 0; i < l->count; i++)
		link_close(l->item[i], reason);
}

bool links_flush(struct links *l, struct instant now, bool at_once)
{
	bool again = false;

	for (unsigned i = 0; i < l->count; i++)
		again |= link_flush(l->item[i], now, at_once);
	return again;
}

bool links_wait(const struct links *l)
{
	bool waits = false;

	for (unsigned i = 0; i < l->count; i++)
		waits |= link_waits(l->item[i]);
	return waits;
}

struct instant links_answered(const struct links *l)
{
	struct instant last = link_answered(l->item[0]);

	for (unsigned i = 1; i < l->count; i++)
		last = instant_max(last, link_answered(l->item[i]));
	return last;
}
