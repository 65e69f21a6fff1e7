/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/carry.c: how connections inside TLS end when the net is carried. */
#include "tests/fixture/tls_client.h"

#include "daemon/base/mem.h"

#include <stdlib.h>

#define LAST "! DRAIN\n"

/* All that the net has written arrives, and the end is that of TLS: nobody has cut it. */
static void hears_the_last(struct client c, const char *text)
{
	char got[64];

	client_reads(c, strlen(text), got, strlen(text));
	ck_assert_mem_eq(got, text, strlen(text));
	net_loop_until(&w, SSL_read(c.tls, got, 1) <= 0 && SSL_get_shutdown(c.tls) & SSL_RECEIVED_SHUTDOWN);
}

static void ends_tls(struct net_loop *world, uint64_t session, const char *line)
{
	(void)session;
	if (!strcmp(line, "end"))
		net_end_tls(world->net, LAST);
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

LOOP_TEST(a_session_inside_tls_gets_a_line_and_is_gone_even_in_a_pause, 2)
{
	struct client c = client_opens(0);
	int plain = net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	net_pause(w.net, _i);
	client_says(c, "unread\n");
	net_send(w.net, UINT64_C(1) << 32, "OK\n", 3);
	net_end_tls(w.net, LAST);
	net_end_tls(w.net, LAST);
	ck_assert_uint_eq(buf_length(&w.told), 0); /* not from inside net_end_tls */
	net_loop_told(&w, "gone 0.1 restart\n");
	ck_assert_uint_eq(net_sessions(w.net), 1);
	hears_the_last(c, "OK\n" LAST);
	net_send(w.net, w.session, "OK\n", 3);
	net_loop_hears(&w, plain, "OK\n");
	client_drops(c);
	net_loop_until(&w, net_closing(w.net) == 0);
	close(plain);
}

TEST(inside_a_callback_the_lines_behind_are_dropped)
{
	struct client c = client_opens(0);

	w.on_line = ends_tls;
	client_says(c, "a\nend\nb\n");
	net_loop_told(&w, "line 0.1 a\nline 0.1 end\ngone 0.1 restart\n");
	hears_the_last(c, LAST);
	client_drops(c);
}

#define MANY 16000u
static char many[MANY + 1];

/* The others say their lines with the first of the session inside TLS. When it has used up a share, and one of them has its own, it stands behind the third. */
static void pauses_behind_tls(struct net_loop *world, uint64_t session, const char *line)
{
	static uint64_t before;

	(void)line;
	if (world->lines == 1)
		for (unsigned i = 0; i < 2; i++)
			net_loop_says(world, ((int *)world->data)[i], many);
	if (session != before && before == UINT64_C(1) << 32)
		net_pause(world->net, true);
	before = session;
}

/* Of sessions whose lines wait, those that end come first: the others are told nothing in a pause. */
TEST(waiting_lines_of_others_delay_no_end)
{
	struct client c = client_opens(0);
	int plain[2] = {net_loop_unix(&w)};
	unsigned long told;

	net_loop_told(&w, "open 1.1\n");
	plain[1] = net_loop_unix(&w);
	net_loop_told(&w, "open 2.1\n");
	memset(many, '\n', MANY);
	w.data = plain;
	w.quiet = true;
	w.on_line = pauses_behind_tls;
	ck_assert_int_eq(SSL_write(c.tls, many, MANY), MANY);
	net_loop_until(&w, w.lines > 0);
	net_loop_settle(&w);
	told = w.lines;
	ck_assert_uint_lt(told, 2 * MANY);
	net_end_tls(w.net, LAST);
	net_loop_until(&w, net_sessions(w.net) == 2);
	ck_assert_uint_eq(w.lines, told);
	client_drops(c);
	close(plain[0]);
	close(plain[1]);
}

TEST(a_session_that_cannot_take_the_line_is_gone_for_that)
{
	struct client c = client_opens(0);

	net_set_limits(w.net, 4, 100, 100, w.conf.peer_max);
	net_end_tls(w.net, LAST);
	net_loop_told(&w, "gone 0.1 overflow\n");
	client_drops(c);
}

TEST(a_session_that_hangs_up_by_then_is_not_told_of)
{
	struct client c = client_opens(0);

	net_end_tls(w.net, LAST);
	net_hangup(w.net, w.session);
	net_loop_at_rest(&w);
	hears_the_last(c, LAST);
	client_drops(c);
}

/* 0: nobody has ended it, 1: it was ended, and the loop had no time to tell, 2: it was told, and the connection is closing. */
LOOP_TEST(what_is_left_of_tls_ends_with_its_net, 3)
{
	struct client c = client_opens(0);
	int plain = net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	client_says(c, "unread\n");
	net_pause(w.net, true);
	net_send(w.net, UINT64_C(1) << 32, "OK\n", 3);
	if (_i)
		net_end_tls(w.net, LAST);
	if (_i == 2)
		net_loop_told(&w, "gone 0.1 restart\n");
	net_loop_packs(&w);
	net_loop_unpacks(&w);
	net_loop_told(&w, _i == 2 ? "" : "gone 0.1 restart\n");
	ck_assert_uint_eq(net_sessions(w.net), 1);
	ck_assert_uint_eq(net_closing(w.net), 1); /* it waits for the client, without TLS */
	hears_the_last(c, _i ? "OK\n" LAST : "OK\n");
	client_drops(c);
	net_loop_until(&w, net_closing(w.net) == 0);
	net_loop_says(&w, plain, "a\n");
	net_loop_told(&w, "line 1.1 a\n");
	close(plain);
}

TEST(one_that_is_not_read_is_closed_and_told)
{
	static char bytes[2 * 1024 * 1024];
	struct client c = client_opens(SMALL);

	net_send(w.net, w.session, bytes, sizeof(bytes));
	net_send(w.net, w.session, bytes, sizeof(bytes));
	net_loop_pass(&w);
	net_loop_packs(&w);
	net_loop_unpacks(&w);
	net_loop_told(&w, "gone 0.1 restart\n");
	ck_assert_uint_eq(net_closing(w.net), 0);
	client_drops(c);
}

/* In a pause no session begins; what was said in the handshake is not lost if the pause is taken back. */
TEST(a_handshake_waits_in_a_pause)
{
	struct client c = client_dials(0);

	ck_assert_int_eq(SSL_do_handshake(c.tls), -1);
	net_loop_settle(&w);
	net_pause(w.net, true);
	for (unsigned i = 0; i < 3; i++) {
		SSL_do_handshake(c.tls);
		net_loop_settle(&w);
	}
	ck_assert_uint_eq(buf_length(&w.told), 0);
	net_pause(w.net, false);
	net_loop_until(&w, SSL_do_handshake(c.tls) == 1);
	client_says(c, "a\n");
	net_loop_told(&w, "open 0.1\nline 0.1 a\n");
	client_drops(c);
}

/* The client may be done with the handshake before it reads that nobody is there. */
static bool is_cut(struct client c)
{
	char byte;
	int r = SSL_do_handshake(c.tls);

	if (r == 1)
		r = SSL_read(c.tls, &byte, 1);
	return r <= 0 && SSL_get_error(c.tls, r) != SSL_ERROR_WANT_READ;
}

LOOP_TEST(a_handshake_ends_with_its_net_and_its_listener_goes_on, 2)
{
	struct client c = client_dials(0);

	ck_assert_int_eq(SSL_do_handshake(c.tls), -1);
	net_loop_settle(&w);
	if (_i) {
		net_end_tls(w.net, LAST);
	} else {
		net_loop_packs(&w);
		net_loop_unpacks(&w);
		net_set_tls(w.net, tls_identity());
	}
	net_loop_until(&w, is_cut(c));
	client_drops(c);
	c = client_opens(0);
	client_says(c, "a\n");
	net_loop_told(&w, "line 0.1 a\n");
	client_drops(c);
}
