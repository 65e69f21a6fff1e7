/* SPDX-License-Identifier: BSD-2-Clause */
/* See resolver.h. getaddrinfo cannot be interrupted, so each lookup is a separate task. A forgotten one lives until it ends. */
#include "daemon/redis/resolver.h"
#include "daemon/base/mem.h"
#include "daemon/base/offload.h"
#include "daemon/redis/failure.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

struct lookup {
	struct task task;
	resolver_getaddrinfo *how;
	char *host;
	char service[8];
	struct addresses found;
	int error, system_error; /* EAI_…; errno of EAI_SYSTEM */
	resolver_done *done;
	void *context;
};

struct resolver {
	struct offload *offload;
	struct event *event;
	resolver_getaddrinfo *how;
};

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
	return a->n == b->n && !memcmp(&a->name, &b->name, a->n);
}

static void addresses_fill(struct addresses *a, const struct addrinfo *list)
{
	a->count = 0;
	for (; list && a->count < ADDRESSES_MAX; list = list->ai_next) {
		if (list->ai_addrlen > sizeof(a->item[0].name))
			continue;
		memcpy(&a->item[a->count].name, list->ai_addr, list->ai_addrlen);
		a->item[a->count++].n = list->ai_addrlen;
	}
}

static int addresses_ask(resolver_getaddrinfo *how, const char *host, const char *service, int flags, struct addresses *a)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	int error = how(host, service, &hints, &list);

	if (error)
		return error;
	addresses_fill(a, list);
	freeaddrinfo(list);
	return a->count ? 0 : EAI_NONAME;
}

bool addresses_from_number(const char *host, uint16_t port, struct addresses *ret_addresses)
{
	char service[8];

	(void)snprintf(service, sizeof(service), "%u", port);
	return addresses_ask(getaddrinfo, host, service, AI_NUMERICHOST, ret_addresses) == 0;
}

static void addresses_from_path(const char *path, struct addresses *ret_addresses)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	ret_addresses->count = 0;
	if (strlen(path) >= sizeof(sun.sun_path))
		return;
	memcpy(sun.sun_path, path, strlen(path));
	memcpy(&ret_addresses->item[0].name, &sun, sizeof(sun));
	ret_addresses->item[0].n = sizeof(sun);
	ret_addresses->count = 1;
}

bool addresses_are_known(const char *path, const char *host, uint16_t port, struct addresses *ret_addresses)
{
	if (!path)
		return addresses_from_number(host, port, ret_addresses);
	addresses_from_path(path, ret_addresses);
	return true;
}

/* Whether this process, or this host, has no descriptor left: an errno, or 0. getaddrinfo then returns one of many errors. */
static int descriptors_lacking(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), error = errno;

	if (fd >= 0)
		close(fd);
	return fd < 0 && (error == EMFILE || error == ENFILE) ? error : 0;
}

static void lookup_work(struct task *t)
{
	struct lookup *q = (struct lookup *)t;
	int error, lacking;

	q->error = addresses_ask(q->how, q->host, q->service, 0, &q->found);
	error = errno;
	lacking = q->error ? descriptors_lacking() : 0;
	q->system_error = lacking ? lacking : q->error == EAI_SYSTEM ? error : 0;
}

static void lookup_end(struct task *t, bool wanted)
{
	struct lookup *q = (struct lookup *)t;
	const char *cause = q->system_error ? failure_errno(q->system_error) : q->error ? gai_strerror(q->error) : "resolved";
	enum defect defect = failure_errno_defect(t->error ? t->error : q->system_error);
	char reason[256];

	if (wanted) {
		(void)snprintf(reason, sizeof(reason), "%s: %s%s", q->host, t->error ? "cannot start a thread: " : "", t->error ? strerror(t->error) : cause);
		q->done(q->context, &q->found, defect == DEFECT_DESCRIPTORS ? defect : DEFECT_UNKNOWN_HOST, reason);
	}
	free(q->host);
	free(q);
}

static void resolver_on_answer(evutil_socket_t fd, short what, void *context)
{
	struct resolver *r = context;

	(void)fd, (void)what;
	offload_collect(r->offload);
}

struct resolver *resolver_new(struct event_base *base, resolver_getaddrinfo *how)
{
	struct resolver *r = mem_alloc(sizeof(*r));

	r->how = how;
	r->offload = offload_new();
	r->event = event_new(base, offload_fd(r->offload), EV_READ | EV_PERSIST, resolver_on_answer, r);
	if (!r->event || event_add(r->event, NULL) < 0)
		mem_exhausted();
	return r;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	event_free(r->event);
	offload_free(r->offload);
	free(r);
}

struct lookup *resolver_ask(struct resolver *r, const char *host, uint16_t port, resolver_done *done, void *context)
{
	struct lookup *q = mem_alloc(sizeof(*q));

	q->task = (struct task){.work = lookup_work, .end = lookup_end};
	q->how = r->how;
	q->host = mem_text(host);
	(void)snprintf(q->service, sizeof(q->service), "%u", port);
	q->done = done;
	q->context = context;
	offload_begin(r->offload, &q->task);
	return q;
}

void resolver_forget(struct lookup *q)
{
	if (q)
		q->task.forgotten = true;
}
