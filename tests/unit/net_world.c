/* SPDX-License-Identifier: BSD-2-Clause */
/* The world of the net tests. */
#include "tests/unit/net_world.h"
#include "daemon/base/log.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* --- the sink ------------------------------------------------------------------------------------------------------ */

static void note(struct world *w, const char *what, uint64_t session, const char *text)
{
	ck_assert_msg(!w->inside || !w->net, "a callback inside a callback");
	if (!w->quiet)
		buf_printf(&w->told, "%s %u.%u%s%s\n", what, (unsigned)(session & UINT32_MAX), (unsigned)(session >> 32),
			   *text ? " " : "", text);
}

static void on_open(void *context, uint64_t session, const struct peer *peer)
{
	struct world *w = context;

	w->peer = *peer;
	w->session = session;
	w->opened++;
	note(w, "open", session, "");
}

static void on_line(void *context, uint64_t session, char *line, size_t n)
{
	struct world *w = context;
	char text[256];

	w->lines++;
	snprintf(text, sizeof(text), "%.*s", (int)n, line);
	note(w, "line", session, text);
	w->inside = true;
	if (w->on_line)
		w->on_line(w, session, text);
	w->inside = false;
	memset(line, '#', n); /* the bytes may be overwritten, and are still there */
}

static void end(struct world *w, const char *what, uint64_t session)
{
	note(w, what, session, "");
	w->inside = true;
	if (w->on_end)
		w->on_end(w, session);
	w->inside = false;
}

static void on_too_long(void *context, uint64_t session)
{
	end(context, "toolong", session);
}

static void on_parting(void *context, uint64_t session)
{
	end(context, "parting", session);
}

static void on_sent(void *context, uint64_t session)
{
	end(context, "sent", session);
}

static void on_eof(void *context, uint64_t session)
{
	end(context, "eof", session);
}

static void on_gone(void *context, uint64_t session, enum gone how)
{
	static const char *const name[GONE_N] = {"hangup", "reset", "keepalive", "overflow"};

	note(context, "gone", session, name[how]);
}

static void on_writing(void *context)
{
	struct world *w = context;

	if (w->on_writing)
		w->on_writing(w);
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

static int tcp_listening(uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert(!bind(fd, (struct sockaddr *)&a, n) && !listen(fd, 4096) && !getsockname(fd, (struct sockaddr *)&a, &n));
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static int epoll_find(void)
{
	char path[64], target[64];
	int fd;

	for (fd = 0; fd < 1024; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && !strncmp(target, "anon_inode:[eventpoll]", (size_t)n))
			return fd;
	}
	return -1;
}

void world_init(struct world *w, struct net_conf conf)
{
	const struct net_sink sink = {.context = w,
				      .open = on_open,
				      .line = on_line,
				      .too_long = on_too_long,
				      .parting = on_parting,
				      .sent = on_sent,
				      .eof = on_eof,
				      .gone = on_gone,
				      .writing = on_writing};

	*w = (struct world){.folder = "/tmp/net-test-XXXXXX"};
	buf_init(&w->told);
	log_set_level(LOG_ERROR);
	w->base = event_base_new();
	w->epoll = epoll_find();
	ck_assert_int_ge(w->epoll, 0);
	ck_assert_ptr_nonnull(mkdtemp(w->folder));
	snprintf(w->path, sizeof(w->path), "%s/socket", w->folder);
	w->net = net_new(w->base, &conf, &sink);
	ck_assert_ptr_nonnull(w->net);
	ck_assert_int_eq(net_listen_unix(w->net, w->path), 0);
	ck_assert_int_eq(net_listen_fd(w->net, tcp_listening(&w->port)), 0);
}

void world_release(struct world *w)
{
	net_free(w->net);
	event_base_free(w->base);
	buf_release(&w->told);
	ck_assert_msg(rmdir(w->folder) == 0, "something is left in %s", w->folder);
}

/* --- clients ------------------------------------------------------------------------------------------------------- */

int world_unix(struct world *w)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", w->path);
	ck_assert_msg(!connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect: %s", strerror(errno));
	return fd;
}

int world_tcp(struct world *w)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(w->port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_msg(!connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect: %s", strerror(errno));
	return fd;
}

void world_resets(int fd)
{
	const struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

double world_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void world_pass(struct world *w)
{
	struct pollfd p = {.fd = w->epoll, .events = POLLIN};

	poll(&p, 1, event_base_get_num_events(w->base, EVENT_BASE_COUNT_ACTIVE) > 0 ? 0 : 10);
	event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	net_flush(w->net);
}

static bool is_ready(const struct world *w)
{
	struct pollfd p = {.fd = w->epoll, .events = POLLIN};

	return event_base_get_num_events(w->base, EVENT_BASE_COUNT_ACTIVE) > 0 || poll(&p, 1, 0) > 0;
}

void world_settle(struct world *w)
{
	int passes = 0;

	do {
		event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		net_flush(w->net);
		ck_assert_msg(++passes < 100000, "the loop never comes to rest");
	} while (is_ready(w));
}

void world_told(struct world *w, const char *expected)
{
	size_t n = strlen(expected);

	world_until(w, buf_length(&w->told) >= n);
	world_settle(w);
	ck_assert_str_eq((buf_append(&w->told, "", 1), buf_begin(&w->told)), expected);
	buf_clear(&w->told);
}

void world_at_rest(struct world *w)
{
	world_settle(w);
	world_told(w, "");
	ck_assert_msg(!is_ready(w), "something is always ready");
}

void world_says(struct world *w, int fd, const char *text)
{
	(void)w;
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

void world_hears(struct world *w, int fd, const char *text)
{
	size_t n = strlen(text), have = 0;
	char got[1024] = "";

	ck_assert(n < sizeof(got));
	while (have < n) {
		ssize_t r = -1;

		world_until(w, (r = recv(fd, got + have, n - have, MSG_DONTWAIT)) >= 0 || errno != EAGAIN);
		ck_assert_msg(r > 0, "instead of '%s': '%s' and %s", text, got, r ? strerror(errno) : "EOF");
		have += (size_t)r;
	}
	ck_assert_str_eq(got, text);
}

void world_drains(struct world *w, int fd, size_t n)
{
	static char trash[65536];

	while (n) {
		ssize_t r = -1;

		world_until(w,
			    (r = recv(fd, trash, n < sizeof(trash) ? n : sizeof(trash), MSG_DONTWAIT)) >= 0 || errno != EAGAIN);
		ck_assert_msg(r > 0, "%zu bytes are missing", n);
		n -= (size_t)r;
	}
}

void world_eof(struct world *w, int fd)
{
	char trash[65536];
	ssize_t r = -1;

	do
		world_until(w, (r = recv(fd, trash, sizeof(trash), MSG_DONTWAIT)) >= 0 || errno != EAGAIN);
	while (r > 0);
	ck_assert_msg(r == 0, "instead of EOF: %s", strerror(errno));
}
