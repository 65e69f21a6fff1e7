/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop, the connections and the figures of the load generators. */
#include "tests/load/gen.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EVENTS 256

struct gen gen = {.epoll = -1};

static union {
	struct sockaddr any;
	struct sockaddr_un path;
	struct sockaddr_in in;
} address;
static socklen_t address_n;
static char scratch[65536];

int64_t gen_clock(void)
{
	return clock_boottime().us;
}

void gen_tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/* --- connections --------------------------------------------------------------------------------------------------- */

static void peer_watch(const struct peer *p, int how)
{
	struct epoll_event e = {.data.ptr = (void *)(uintptr_t)p};

	e.events = (p->kind->deaf ? 0 : EPOLLIN) | (p->full ? EPOLLOUT : 0);
	if (epoll_ctl(gen.epoll, how, p->fd, &e))
		err(1, "epoll_ctl");
}

void peer_dial(struct peer *p, const struct peer_kind *kind, unsigned number)
{
	int one = 1;

	*p = (struct peer){.kind = kind, .number = number};
	buf_init(&p->in);
	buf_init(&p->out);
	p->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		err(1, "socket %u", number);
	while (connect(p->fd, &address.any, address_n))
		if (errno != EINTR)
			err(1, "connect %u", number);
	if (address.any.sa_family == AF_INET)
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(p->fd, F_SETFL, O_NONBLOCK);
	peer_watch(p, EPOLL_CTL_ADD);
}

void peer_close(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	buf_release(&p->in);
	buf_release(&p->out);
}

static void peer_end(struct peer *p)
{
	peer_close(p);
	if (p->kind->ended)
		p->kind->ended(p);
}

void peer_say(struct peer *p, const char *bytes, size_t n)
{
	buf_append(&p->out, bytes, n);
}

void peer_printf(struct peer *p, const char *format, ...)
{
	char line[1024];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(line))
		errx(1, "a line is too long");
	peer_say(p, line, (size_t)n);
}

/* A connection that has ended is noticed by the loop. */
void peer_flush(struct peer *p)
{
	bool was = p->full;

	p->full = false;
	while (buf_length(&p->out) && !p->full) {
		ssize_t n = send(p->fd, buf_begin(&p->out), buf_length(&p->out), MSG_NOSIGNAL);

		p->full = n < 0;
		if (n < 0)
			break;
		gen.bytes_out += (uint64_t)n;
		buf_consume(&p->out, (size_t)n);
	}
	if (p->full != was)
		peer_watch(p, EPOLL_CTL_MOD);
}

void peer_await_room(struct peer *p)
{
	p->full = true;
	peer_watch(p, EPOLL_CTL_MOD);
}

static void peer_lines(struct peer *p)
{
	char *lf;

	while (p->fd >= 0 && buf_length(&p->in) && (lf = memchr(buf_begin(&p->in), '\n', buf_length(&p->in)))) {
		char *line = buf_begin(&p->in);
		size_t n = (size_t)(lf - line);

		*lf = '\0';
		p->kind->line(p, line, n);
		if (p->fd >= 0)
			buf_consume(&p->in, n + 1);
	}
	if (p->fd >= 0)
		buf_trim(&p->in, 0); /* of ten thousand, most are silent */
}

/* False: it has ended. */
static bool peer_read(struct peer *p)
{
	ssize_t n = recv(p->fd, scratch, sizeof(scratch), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	gen.bytes_in += (uint64_t)n;
	if (p->kind->line) {
		buf_append(&p->in, scratch, (size_t)n);
		peer_lines(p);
	}
	return true;
}

static void peer_ready(struct peer *p, uint32_t events)
{
	if ((events & EPOLLIN) && !peer_read(p)) {
		peer_end(p);
		return;
	}
	if (p->fd >= 0 && (events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN)) {
		peer_end(p);
		return;
	}
	if (p->fd >= 0 && (events & EPOLLOUT)) {
		peer_flush(p);
		if (!p->full && p->kind->room)
			p->kind->room(p);
	}
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

static void read_commands(void)
{
	static char text[4096];
	static size_t n;
	ssize_t got = read(STDIN_FILENO, text + n, sizeof(text) - 1 - n);
	char *lf;

	if (got <= 0) {
		gen.over = true;
		return;
	}
	n += (size_t)got;
	while ((lf = memchr(text, '\n', n))) {
		*lf = '\0';
		gen.command(text);
		n -= (size_t)(lf + 1 - text);
		memmove(text, lf + 1, n);
	}
}

static void wait_for_news(int64_t us)
{
	struct pollfd p[2] = {{.fd = gen.epoll, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
	struct timespec t = {.tv_sec = us / SEC, .tv_nsec = us % SEC * 1000};
	struct epoll_event e[EVENTS];
	int n;

	if (ppoll(p, 2, us < 0 ? NULL : &t, NULL) < 0 && errno != EINTR)
		err(1, "poll");
	gen.now_us = gen_clock();
	if (p[1].revents)
		read_commands();
	n = epoll_wait(gen.epoll, e, EVENTS, 0);
	for (int i = 0; i < n; i++)
		peer_ready(e[i].data.ptr, e[i].events);
}

static void set_address(const char *text)
{
	char host[64];
	const char *colon = strrchr(text, ':');

	if (strchr(text, '/')) {
		address.path.sun_family = AF_UNIX;
		snprintf(address.path.sun_path, sizeof(address.path.sun_path), "%s", text);
		address_n = sizeof(address.path);
		return;
	}
	if (!colon)
		errx(2, "%s is no address", text);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	address.in.sin_family = AF_INET;
	address.in.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, host, &address.in.sin_addr) != 1)
		errx(2, "%s is no address", text);
	address_n = sizeof(address.in);
}

void gen_run(const char *where, void (*command)(const char *word), int64_t (*tick)(void))
{
	struct rlimit limit;

	set_address(where);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	gen.command = command;
	gen.tick = tick;
	gen.epoll = epoll_create1(EPOLL_CLOEXEC);
	gen.now_us = gen_clock();
	if (gen.epoll < 0)
		err(1, "epoll_create1");
	gen_tell("ready");
	while (!gen.over) {
		int64_t us = gen.tick ? gen.tick() : -1;

		wait_for_news(us);
	}
}

/* --- figures ------------------------------------------------------------------------------------------------------- */

void samples_add(struct samples *s, int64_t us)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 4096;
		s->us = mem_grow(s->us, s->cap, sizeof(*s->us));
	}
	s->us[s->n++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
	s->sorted = false;
}

static int order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

uint32_t samples_at(struct samples *s, double share)
{
	size_t at = (size_t)(share * (double)s->n);

	if (s->n == 0)
		return 0;
	if (!s->sorted)
		qsort(s->us, s->n, sizeof(*s->us), order);
	s->sorted = true;
	return s->us[at < s->n ? at : s->n - 1];
}

void samples_clear(struct samples *s)
{
	s->n = 0;
}
