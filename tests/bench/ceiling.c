/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build/ceiling PATH: what a lock server costs at the least. It speaks enough of the line protocol for build/drive (LOCK, UNLOCK, and the end of a connection),
 * keeps names in memory, and serves waiters first come, first served. No leases, no tokens that outlive it, no errors but one.
 */
#include "daemon/base/buf.h"
#include "daemon/base/map.h"
#include "daemon/base/mem.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EVENTS 256

struct client;

/* One client that holds a name, or waits for it. */
struct ask {
	TAILQ_ENTRY(ask) in_name, in_client;
	struct name *name;
	struct client *client;
};

TAILQ_HEAD(asks, ask);

struct name {
	struct map_node node;
	struct asks asks; /* the first holds it */
	size_t n;
	char text[];
};

struct client {
	int fd;
	struct buf in, out;
	struct asks asks;
	struct client *next; /* the next of those with something to send */
	bool queued, gone;
};

static struct map names;
static struct client *senders;
static uint64_t fence;
static int epoll;

static bool name_is(const struct map_node *node, const void *key, size_t n)
{
	const struct name *name = (const struct name *)(const void *)node;

	return name->n == n && memcmp(name->text, key, n) == 0;
}

static struct name *name_find(const char *text, size_t n, bool create)
{
	uint64_t hash = map_hash(&names, text, n);
	struct name *name = (struct name *)(void *)map_find(&names, hash, text, n, name_is);

	if (name || !create)
		return name;
	name = mem_alloc(sizeof(*name) + n);
	name->n = n;
	memcpy(name->text, text, n);
	TAILQ_INIT(&name->asks);
	map_insert(&names, &name->node, hash);
	return name;
}

static void client_sends(struct client *c)
{
	if (c->queued)
		return;
	c->queued = true;
	c->next = senders;
	senders = c;
}

static void grant(struct ask *a)
{
	buf_printf(&a->client->out, "OK name=%.*s fence=%" PRIu64 " valid_ms=9898 ttl_ms=10000 count=1\n", (int)a->name->n, a->name->text, ++fence);
	client_sends(a->client);
}

static void ask_ends(struct ask *a)
{
	struct name *name = a->name;
	bool held = a == TAILQ_FIRST(&name->asks);

	TAILQ_REMOVE(&name->asks, a, in_name);
	TAILQ_REMOVE(&a->client->asks, a, in_client);
	free(a);
	if (TAILQ_EMPTY(&name->asks)) {
		map_remove(&names, &name->node);
		free(name);
	} else if (held) {
		grant(TAILQ_FIRST(&name->asks));
	}
}

static void lock(struct client *c, const char *text, size_t n)
{
	struct name *name = name_find(text, n, true);
	struct ask *a = mem_alloc(sizeof(*a));

	a->name = name;
	a->client = c;
	TAILQ_INSERT_TAIL(&name->asks, a, in_name);
	TAILQ_INSERT_TAIL(&c->asks, a, in_client);
	if (a == TAILQ_FIRST(&name->asks))
		grant(a);
}

static void unlock(struct client *c, const char *text, size_t n)
{
	struct name *name = name_find(text, n, false);

	if (name && TAILQ_FIRST(&name->asks)->client == c) {
		ask_ends(TAILQ_FIRST(&name->asks));
		buf_printf(&c->out, "OK name=%.*s count=0\n", (int)n, text);
	} else {
		buf_printf(&c->out, "ERR NOTHELD this session does not hold the lock\n");
	}
	client_sends(c);
}

static void line_heard(struct client *c, const char *line, size_t n)
{
	const char *text = memchr(line, ' ', n), *end;
	size_t rest;

	if (!text++) {
		buf_printf(&c->out, "OK\n");
		client_sends(c);
		return;
	}
	rest = n - (size_t)(text - line);
	end = memchr(text, ' ', rest);
	if (line[0] == 'L')
		lock(c, text, end ? (size_t)(end - text) : rest);
	else
		unlock(c, text, end ? (size_t)(end - text) : rest);
}

static void client_ends(struct client *c)
{
	while (!TAILQ_EMPTY(&c->asks))
		ask_ends(TAILQ_FIRST(&c->asks));
	close(c->fd);
	c->gone = true;
	client_sends(c); /* it is freed with the senders: other events of this pass may name it */
}

static void client_reads(struct client *c)
{
	ssize_t n = recv(c->fd, buf_reserve(&c->in, 65536), 65536, MSG_DONTWAIT);
	char *lf;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_ends(c);
		return;
	}
	buf_commit(&c->in, (size_t)n);
	while (buf_length(&c->in) && (lf = memchr(buf_begin(&c->in), '\n', buf_length(&c->in)))) {
		n = lf - buf_begin(&c->in);
		line_heard(c, buf_begin(&c->in), (size_t)n);
		buf_consume(&c->in, (size_t)n + 1);
	}
}

/* Sends each client all that it is told in this pass by one write. The clients of the benchmarks read what they are sent. */
static void send_all(void)
{
	while (senders) {
		struct client *c = senders;

		senders = c->next;
		c->queued = false;
		if (!c->gone && buf_length(&c->out) && send(c->fd, buf_begin(&c->out), buf_length(&c->out), MSG_NOSIGNAL) < 0 && errno != EPIPE)
			err(1, "send");
		buf_clear(&c->out);
		if (c->gone) {
			buf_release(&c->in);
			buf_release(&c->out);
			free(c);
		}
	}
}

static void client_comes(int fd)
{
	struct client *c = mem_alloc(sizeof(*c));
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

	c->fd = fd;
	buf_init(&c->in);
	buf_init(&c->out);
	TAILQ_INIT(&c->asks);
	if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		err(1, "accept");
}

static int listen_at(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1024) || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		err(1, "%s", path);
	return fd;
}

int main(int argc, char **argv)
{
	const uint64_t key[2] = {1, 2};
	int listener;

	if (argc != 2)
		errx(2, "usage: ceiling PATH");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	map_init(&names, key);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	listener = listen_at(argv[1]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct epoll_event e[EVENTS];
		int n = epoll_wait(epoll, e, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct client *c = e[i].data.ptr;

			if (!c)
				client_comes(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
			else if (!c->gone)
				client_reads(c);
		}
		send_all();
	}
}
