/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/web/visits.c and web.c: how much of a pass of the loop many connections take that come, or ask, at once; what one may send; and the pace of TLS. */
#include "daemon/base/clock.h"
#include "daemon/web/internal.h"
#include "tests/fixture/files.h"
#include "tests/fixture/tls_identity.h"

#include <check.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <signal.h>
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

static void all_connect(void)
{
	while (w.web->visits.count < CLIENTS)
		event_base_loop(w.base, EVLOOP_ONCE);
}

static void client_sends(unsigned i, const char *text)
{
	ck_assert_int_eq(send(w.client[i], text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void clients_leave(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		close(w.client[i]);
		w.client[i] = -1;
	}
}

static void begin(struct ssl_ctx_st *tls)
{
	const struct web_sink sink = {.ready = is_ready};

	snprintf(w.folder, sizeof(w.folder), "/tmp/redlockd-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(w.folder));
	snprintf(w.path, sizeof(w.path), "%s/web", w.folder);
	w.asked = 0;
	w.base = event_base_new();
	w.web = web_new(w.base, &(const struct web_conf){.path = w.path, .tls = tls}, &sink);
	ck_assert_ptr_nonnull(w.web);
	ck_assert_int_eq(web_listen(w.web, NULL), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_connects(i);
}

static void setup(void)
{
	begin(NULL);
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

	all_connect();
	for (unsigned i = 0; i < CLIENTS; i++)
		client_sends(i, request);
	while (w.asked < CLIENTS) {
		unsigned before = w.asked;

		pass();
		ck_assert_uint_le(w.asked - before, 2); /* the time is counted from the end of the first */
	}
}

static unsigned visits_heard(void)
{
	const struct visit *v;
	unsigned n = 0;

	TAILQ_FOREACH(v, &w.web->visits.all, next)
		n += evbuffer_get_length(bufferevent_get_input(v->bev)) > 0;
	return n;
}

TEST(a_pass_ends_when_parts_of_requests_have_taken_long)
{
	all_connect();
	for (unsigned i = 0; i < CLIENTS; i++)
		client_sends(i, "GET /rea");
	for (unsigned before = 0; before < CLIENTS; before = visits_heard()) {
		w.web->requests_end = INSTANT_PAST;
		ck_assert_int_ge(event_base_loop(w.base, EVLOOP_ONCE), 0);
		ck_assert_uint_le(visits_heard() - before, 1);
	}
}

static unsigned clients_answered(void)
{
	unsigned n = 0;
	char byte;

	for (unsigned i = 0; i < CLIENTS; i++)
		n += recv(w.client[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
	return n;
}

TEST(a_pass_ends_when_answers_have_taken_long)
{
	all_connect();
	for (unsigned i = 0; i < CLIENTS; i++)
		client_sends(i, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
	for (unsigned before = 0; before < CLIENTS; before = clients_answered()) {
		w.web->requests_end = INSTANT_PAST;
		ck_assert_int_ge(event_base_loop(w.base, EVLOOP_ONCE), 0);
		ck_assert_uint_le(clients_answered() - before, 1);
	}
}

/* The client of this number has sent this again and again. */
static void assert_is_cut(unsigned i, const char *text, size_t most)
{
	char got[64] = "";
	ssize_t n;

	for (size_t sent = 0; sent < most; sent += strlen(text)) {
		if (send(w.client[i], text, strlen(text), MSG_NOSIGNAL) < 0)
			break;
		ck_assert_int_ge(event_base_loop(w.base, EVLOOP_NONBLOCK), 0);
		web_end_pass(w.web);
	}
	while ((n = recv(w.client[i], got, sizeof(got) - 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
		pass();
	ck_assert_int_gt(n, 0);
	ck_assert_msg(strncmp(got, "HTTP/1.1 431 ", 13) == 0, "%s", got);
}

TEST(a_request_has_a_bounded_number_of_lines)
{
	all_connect();
	client_sends(0, "GET / HTTP/1.1\r\n");
	assert_is_cut(0, "a:\n", 400);
	client_sends(1, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_is_cut(1, "\n\n", 400);
	client_sends(2, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_is_cut(2, "1\r\nx\r\n", 1200);
}

TEST(a_request_has_a_bounded_number_of_bytes)
{
	all_connect();
	client_sends(0, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_is_cut(0, "00000000000000000000000000000000", 65536);
}

TEST(connections_that_end_together_are_freed_in_several_passes)
{
	unsigned passes = 0;

	all_connect();
	clients_leave();
	while (w.web->visits.count > 0) {
		unsigned before = w.web->visits.count;

		pass();
		passes += w.web->visits.count < before;
	}
	ck_assert_uint_gt(passes, 1);
}

/* --- TLS ------------------------------------------------------------------------------------------------------------ */

#define SHAKING 3

static struct instant stepped[2 * SHAKING];
static unsigned steps;

/* Both steps of a handshake take long: that of the first bytes, and the last one. */
static void takes_long(const SSL *t, int where, int r)
{
	(void)t, (void)r;
	if (!(where & (SSL_CB_HANDSHAKE_START | SSL_CB_HANDSHAKE_DONE)))
		return;
	ck_assert_uint_lt(steps, 2 * SHAKING);
	stepped[steps++] = clock_boottime();
	usleep(10 * MSEC);
}

static bool client_has_shaken(SSL *t)
{
	return SSL_is_init_finished(t) || SSL_do_handshake(t) == 1;
}

static void begin_tls(void)
{
	struct ssl_ctx_st *tls = tls_identity();

	teardown();
	signal(SIGPIPE, SIG_IGN); /* of the clients */
	SSL_CTX_set_info_callback(tls, takes_long);
	steps = 0;
	begin(tls);
	all_connect();
}

TEST(each_step_of_a_handshake_that_takes_long_is_followed_by_a_rest)
{
	static const char request[] = "GET /livez HTTP/1.0\r\nHost: localhost\r\n\r\n";
	SSL_CTX *clients = SSL_CTX_new(TLS_client_method());
	SSL *t[SHAKING];
	char got[9] = "";

	begin_tls();
	for (unsigned i = 0; i < SHAKING; i++) {
		t[i] = SSL_new(clients);
		ck_assert_int_eq(fcntl(w.client[i], F_SETFL, O_NONBLOCK), 0);
		SSL_set_fd(t[i], w.client[i]);
		SSL_set_connect_state(t[i]);
	}
	while (steps < 2 * SHAKING) {
		for (unsigned i = 0; i < SHAKING; i++)
			(void)client_has_shaken(t[i]);
		pass();
	}
	for (unsigned i = 1; i < 2 * SHAKING; i++)
		ck_assert_int_ge(instant_diff(stepped[i], stepped[i - 1]), 30 * MSEC); /* 40, but the clock of libevent has ticks */
	for (unsigned i = 0; i < SHAKING; i++) {
		ck_assert(client_has_shaken(t[i]));
		ck_assert_int_eq(SSL_write(t[i], request, sizeof(request) - 1), sizeof(request) - 1);
		while (SSL_read(t[i], got, sizeof(got) - 1) <= 0)
			pass();
		ck_assert_str_eq(got, "HTTP/1.0");
		SSL_free(t[i]);
	}
	SSL_CTX_free(clients);
}

TEST(handshakes_that_fail_or_are_cut_off_end)
{
	begin_tls();
	client_sends(0, "no TLS");
	visit_shut(TAILQ_LAST(&w.web->visits.all, visit_list));
	while (w.web->visits.count > CLIENTS - 2)
		pass();
	ck_assert_uint_eq(steps, 1);
}
