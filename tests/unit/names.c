/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/names.h"
#include "daemon/base/instant.h"

#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <signal.h>
#include <unistd.h>

#define DEADLINE_S 20

struct names names;

/* What the stand-in says, and a pipe that it waits for first. */
static const char *hosts[3]; /* numeric; the answer */
static int failure;
static int gate[2] = {-1, -1};
static pthread_mutex_t orders = PTHREAD_MUTEX_INITIALIZER; /* of all these, once the thread runs */

/* glibc frees each entry with its address in one piece, so this borrows real lists. */
static int stand_in(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	struct addrinfo numeric = *hints, *list[3] = {NULL};
	int i, fd, fails;
	char byte;

	names.asked_by = pthread_self();
	__atomic_fetch_add(&names.asked, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&orders);
	fd = gate[0];
	fails = failure;
	pthread_mutex_unlock(&orders);
	if (fd >= 0 && read(fd, &byte, 1) != 1)
		return EAI_FAIL;
	if (fails)
		return fails;
	(void)host;
	numeric.ai_flags |= AI_NUMERICHOST;
	pthread_mutex_lock(&orders);
	for (i = 0; i < 3 && hosts[i]; i++)
		ck_assert_int_eq(getaddrinfo(hosts[i], service, &numeric, &list[i]), 0);
	pthread_mutex_unlock(&orders);
	for (i = 0; i < 2 && list[i]; i++)
		list[i]->ai_next = list[i + 1];
	*ret_list = list[0];
	return list[0] ? 0 : EAI_NONAME;
}

void names_host(int i, const char *host)
{
	pthread_mutex_lock(&orders);
	hosts[i] = host;
	pthread_mutex_unlock(&orders);
}

void names_fail(int error)
{
	pthread_mutex_lock(&orders);
	failure = error;
	pthread_mutex_unlock(&orders);
}

void names_hang(void)
{
	pthread_mutex_lock(&orders);
	ck_assert_int_eq(pipe(gate), 0);
	pthread_mutex_unlock(&orders);
}

void names_open(void)
{
	signal(SIGPIPE, SIG_IGN);
	names.base = event_base_new();
	names.resolver = resolver_new(names.base, stand_in);
	hosts[0] = "127.0.0.1";
}

void names_close(void)
{
	resolver_free(names.resolver);
	event_base_free(names.base);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	*(bool *)context = true;
}

void names_await(const unsigned *n, unsigned at_least)
{
	struct timeval tv = {DEADLINE_S, 0};
	bool late = false;
	struct event *deadline = evtimer_new(names.base, on_deadline, &late);

	evtimer_add(deadline, &tv);
	while (__atomic_load_n(n, __ATOMIC_RELAXED) < at_least && !late)
		event_base_loop(names.base, EVLOOP_ONCE);
	event_free(deadline);
	ck_assert_msg(!late, "%u, not %u", *n, at_least);
}

void names_run(int64_t us)
{
	struct timeval tv = {us / SEC, us % SEC};
	bool over = false;
	struct event *end = evtimer_new(names.base, on_deadline, &over);

	evtimer_add(end, &tv);
	while (!over)
		event_base_loop(names.base, EVLOOP_ONCE);
	event_free(end);
}

void names_go_on(size_t n)
{
	ck_assert_int_eq(write(gate[1], "xxxxxxxxxxxxxxxxxxxxxxxx", n), (ssize_t)n);
}
