/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/web/visits.c and web.c: how much of a pass of the loop many connections take that come, or ask, at once. */
#include "daemon/base/clock.h"
#include "daemon/web/internal.h"
#include "tests/fixture/files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS 100

static struct {
	struct event_base *base;
	struct web *web;
	char folder[64], path[96];
	int client[CLIENTS];
	unsigned asked; /* requests for /readyz */
} w;

/* Takes longer than the requests of a pass may. */
static bool is_ready(void *context, struct buf *out)
{
	struct instant end = instant_add(clock_boottime(), 2 * MSEC);

	(void)context, (void)out;
	w.asked++;
	while (instant_before(clock_boottime(), end))
		;
	return true;
}

static void client_connects(unsigned i)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, w.path, strlen(w.path) + 1);
	w.client[i] = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(w.client[i], (struct sockaddr *)&address, sizeof(address)), 0);
}

static void clients_leave(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		close(w.client[i]);
		w.client[i] = -1;
	}
}

static void setup(void)
{
	const struct web_sink sink = {.ready = is_ready};

	snprintf(w.folder, sizeof(w.folder), "/tmp/redlockd-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(w.folder));
	snprintf(w.path, sizeof(w.path), "%s/web", w.folder);
	w.asked = 0;
	w.base = event_base_new();
	w.web = web_new(w.base, &(const struct web_conf){.path = w.path}, &sink);
	ck_assert_ptr_nonnull(w.web);
	ck_assert_int_eq(web_listen(w.web, NULL), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_connects(i);
}

static void teardown(void)
{
	clients_leave();
	web_free(w.web);
	event_base_free(w.base);
	folder_remove(w.folder);
}

static void pass(void)
{
	ck_assert_int_ge(event_base_loop(w.base, EVLOOP_ONCE), 0);
	web_end_pass(w.web);
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_pass_accepts_a_bounded_number_of_connections_and_in_the_end_all)
{
	while (w.web->visits.count < CLIENTS) {
		unsigned before = w.web->visits.count;

		pass();
		ck_assert_uint_le(w.web->visits.count - before, ACCEPTS_PER_PASS);
	}
}

TEST(a_pass_ends_when_requests_have_taken_long)
{
	static const char request[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";

	while (w.web->visits.count < CLIENTS)
		pass();
	for (unsigned i = 0; i < CLIENTS; i++)
		ck_assert_int_eq(send(w.client[i], request, sizeof(request) - 1, 0), sizeof(request) - 1);
	while (w.asked < CLIENTS) {
		unsigned before = w.asked;

		pass();
		ck_assert_uint_le(w.asked - before, 2); /* the time is counted from the end of the first */
	}
}

TEST(connections_that_end_together_are_freed_in_several_passes)
{
	unsigned passes = 0;

	while (w.web->visits.count < CLIENTS)
		pass();
	clients_leave();
	while (w.web->visits.count > 0) {
		unsigned before = w.web->visits.count;

		pass();
		passes += w.web->visits.count < before;
	}
	ck_assert_uint_gt(passes, 1);
}
