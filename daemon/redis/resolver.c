/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread for each lookup under way, one list, one lock. A thread calls getaddrinfo without the lock, puts its lookup on `answered`
 * and ends; an eventfd wakes the loop. resolver_forget clears `done` of a lookup, which no thread ever reads. getaddrinfo cannot be
 * interrupted: if the resolver is freed while threads run, they own it, and the last of them frees it.
 */
#include "daemon/redis/resolver.h"
#include "daemon/base/mem.h"

#include <event2/event.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/un.h>
#include <unistd.h>

struct lookup {
	TAILQ_ENTRY(lookup) next;
	struct resolver *resolver;
	char *host;
	char service[8];
	struct addresses found;
	int error;           /* EAI_… */
	int unstarted;       /* errno: no thread could be started; 0: one was */
	resolver_done *done; /* used by the loop only; NULL: forgotten */
	void *context;
};

TAILQ_HEAD(lookup_list, lookup);

struct resolver {
	pthread_mutex_t lock;
	struct lookup_list answered; /* under the lock */
	unsigned threads;            /* under the lock; those that have not answered yet */
	bool ended;                  /* under the lock; the loop is done with the resolver */
	int fd;                      /* eventfd: a lookup was answered */
	struct event *event;
	resolver_getaddrinfo *how;
};

static void lookup_free(struct lookup *q)
{
	free(q->host);
	free(q);
}

static void resolver_destroy(struct resolver *r)
{
	struct lookup *q;

	while ((q = TAILQ_FIRST(&r->answered))) {
		TAILQ_REMOVE(&r->answered, q, next);
		lookup_free(q);
	}
	close(r->fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
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

/* Called with the lock held. */
static void resolver_put_answered(struct resolver *r, struct lookup *q)
{
	uint64_t one = 1;

	r->threads--;
	TAILQ_INSERT_TAIL(&r->answered, q, next);
	if (write(r->fd, &one, sizeof(one)) < 0)
		abort(); /* an eventfd counts to 2^64 - 2 */
}

/* --- the threads ----------------------------------------------------------------------------------------------------- */

static void *lookup_main(void *context)
{
	struct lookup *q = context;
	struct resolver *r = q->resolver;
	bool last;

	q->error = addresses_ask(r->how, q->host, q->service, 0, &q->found);
	pthread_mutex_lock(&r->lock);
	resolver_put_answered(r, q); /* the loop may free q once the lock is released */
	last = r->ended && !r->threads;
	pthread_mutex_unlock(&r->lock);
	if (last)
		resolver_destroy(r);
	return NULL;
}

/* Blocks all signals in the thread: the loop handles them. Returns 0 or an errno. */
static int lookup_start(struct lookup *q)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, lookup_main, q);
	if (rc == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* --- the loop -------------------------------------------------------------------------------------------------------- */

static struct lookup *resolver_take_answered(struct resolver *r)
{
	struct lookup *q;

	pthread_mutex_lock(&r->lock);
	q = TAILQ_FIRST(&r->answered);
	if (q)
		TAILQ_REMOVE(&r->answered, q, next);
	pthread_mutex_unlock(&r->lock);
	return q;
}

static void lookup_answer(const struct lookup *q)
{
	char reason[256];

	if (q->unstarted)
		(void)snprintf(reason, sizeof(reason), "%s: cannot start a thread: %s", q->host, strerror(q->unstarted));
	else
		(void)snprintf(reason, sizeof(reason), "%s: %s", q->host, q->error ? gai_strerror(q->error) : "resolved");
	q->done(q->context, &q->found, reason);
}

static void resolver_on_answer(evutil_socket_t fd, short what, void *context)
{
	struct resolver *r = context;
	struct lookup *q;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0)
		return;
	while ((q = resolver_take_answered(r))) {
		if (q->done)
			lookup_answer(q);
		lookup_free(q);
	}
}

struct resolver *resolver_new(struct event_base *base, resolver_getaddrinfo *how)
{
	struct resolver *r = mem_alloc(sizeof(*r));

	r->how = how;
	TAILQ_INIT(&r->answered);
	pthread_mutex_init(&r->lock, NULL);
	r->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->event = r->fd < 0 ? NULL : event_new(base, r->fd, EV_READ | EV_PERSIST, resolver_on_answer, r);
	if (!r->event || event_add(r->event, NULL) < 0)
		abort(); /* no memory or no descriptor at start */
	return r;
}

void resolver_free(struct resolver *r)
{
	bool last;

	if (!r)
		return;
	event_free(r->event);
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	last = !r->threads;
	pthread_mutex_unlock(&r->lock);
	if (last)
		resolver_destroy(r);
}

struct lookup *resolver_ask(struct resolver *r, const char *host, uint16_t port, resolver_done *done, void *context)
{
	struct lookup *q = mem_alloc(sizeof(*q));

	q->resolver = r;
	q->host = mem_copy(host, strlen(host));
	(void)snprintf(q->service, sizeof(q->service), "%u", port);
	q->done = done;
	q->context = context;
	pthread_mutex_lock(&r->lock);
	r->threads++;
	pthread_mutex_unlock(&r->lock);
	q->unstarted = lookup_start(q);
	if (q->unstarted) {
		pthread_mutex_lock(&r->lock);
		resolver_put_answered(r, q);
		pthread_mutex_unlock(&r->lock);
	}
	return q;
}

void resolver_forget(struct lookup *q)
{
	if (q)
		q->done = NULL;
}
