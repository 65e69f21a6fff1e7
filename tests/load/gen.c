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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define EVENTS        256
#define ADDRESSES_MAX 16

struct gen gen = {.epoll = -1};

static struct address {
	union {
		struct sockaddr any;
		struct sockaddr_un path;
		struct sockaddr_in in;
	};
	socklen_t n;
} address[ADDRESSES_MAX];
static unsigned addresses;
static char scratch[65536];
static int alarm_fd = -1;
static int64_t alarm_at_us = INT64_MAX; /* when it rings */

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

void peer_dial_at(struct peer *p, const struct peer_kind *kind, unsigned number, unsigned where)
{
	const struct address *a = &address[where];
	int one = 1;

	*p = (struct peer){.kind = kind, .number = number};
	buf_init(&p->in);
	buf_init(&p->out);
	p->fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		err(1, "socket %u", number);
	while (connect(p->fd, &a->any, a->n))
		if (errno != EINTR)
			err(1, "connect %u", number);
	if (a->any.sa_family == AF_INET)
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(p->fd, F_SETFL, O_NONBLOCK);
	peer_watch(p, EPOLL_CTL_ADD);
}

void peer_dial(struct peer *p, const struct peer_kind *kind, unsigned number)
{
	peer_dial_at(p, kind, number, 0);
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

/* The loop notices a connection that has ended. */
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
		buf_trim(&p->in, 0); /* most of ten thousand connections are silent */
}

/* False: the connection has ended. */
static bool peer_read(struct peer *p)
{
	ssize_t n = recv(p->fd, scratch, sizeof(scratch), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	gen.bytes_in += (uint64_t)n;
	if (p->kind->bytes) {
		p->kind->bytes(p, scratch, (size_t)n);
	} else if (p->kind->line) {
		buf_append(&p->in, scratch, (size_t)n);
		peer_lines(p);
	}
	if (p->fd >= 0 && buf_length(&p->out) && !p->full)
		peer_flush(p);
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

/* An alarm that rings too soon does no harm. */
static void set_alarm(int64_t us)
{
	int64_t at_us = gen_clock() + us;
	struct itimerspec t = {.it_value = {.tv_sec = us / SEC, .tv_nsec = us % SEC * 1000}};

	if (us < 0 || alarm_at_us <= at_us)
		return;
	if (us == 0)
		t.it_value.tv_nsec = 1;
	if (timerfd_settime(alarm_fd, 0, &t, NULL))
		err(1, "timerfd_settime");
	alarm_at_us = at_us;
}

static void alarm_rings(void)
{
	uint64_t times;

	if (read(alarm_fd, &times, sizeof(times)) < 0 && errno != EAGAIN)
		err(1, "timerfd");
	alarm_at_us = INT64_MAX;
}

static void wait_for_news(void)
{
	struct epoll_event e[EVENTS];
	int n = epoll_wait(gen.epoll, e, EVENTS, -1);

	if (n < 0 && errno != EINTR)
		err(1, "epoll_wait");
	gen.now_us = gen_clock();
	for (int i = 0; i < n; i++) {
		if (e[i].data.ptr == &gen)
			read_commands();
		else if (e[i].data.ptr == &alarm_fd)
			alarm_rings();
		else
			peer_ready(e[i].data.ptr, e[i].events);
	}
}

static void add_address(const char *text)
{
	struct address *a = &address[addresses++];
	char host[64];
	const char *colon = strrchr(text, ':');

	if (addresses == ADDRESSES_MAX)
		errx(2, "too many addresses");
	if (strchr(text, '/')) {
		a->path.sun_family = AF_UNIX;
		snprintf(a->path.sun_path, sizeof(a->path.sun_path), "%s", text);
		a->n = sizeof(a->path);
		return;
	}
	if (!colon)
		errx(2, "%s is no address", text);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	a->in.sin_family = AF_INET;
	a->in.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, host, &a->in.sin_addr) != 1)
		errx(2, "%s is no address", text);
	a->n = sizeof(a->in);
}

static void add_addresses(const char *list)
{
	char *text = strdup(list), *rest = text, *one;

	if (!text)
		err(1, "strdup");
	while ((one = strsep(&rest, ",")))
		add_address(one);
	free(text);
}

unsigned gen_addresses(void)
{
	return addresses;
}

static void watch(int fd, void *what)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};

	if (fd < 0 || epoll_ctl(gen.epoll, EPOLL_CTL_ADD, fd, &e))
		err(1, "watch");
}

void gen_run(const char *where, void (*command)(const char *word), int64_t (*tick)(void))
{
	struct rlimit limit;

	add_addresses(where);
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
	alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	watch(STDIN_FILENO, &gen);
	watch(alarm_fd, &alarm_fd);
	gen_tell("ready");
	while (!gen.over) {
		set_alarm(gen.tick ? gen.tick() : -1);
		wait_for_news();
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
