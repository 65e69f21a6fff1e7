/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/carry.c, carried.c: connections that go on in another net. Random traffic: net_carry_random_test.c. */
#include "tests/fixture/much_output.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST (UINT64_C(1) << 32)

static void stop_at_b(struct net_loop *world, uint64_t session, const char *line)
{
	if (!strcmp(line, "b"))
		net_read(world->net, session, false);
}

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = much_is_ready, .teardown = much_is_over, .seconds = 60)

/* At every place of two lines. */
LOOP_TEST(a_half_read_line_goes_on, 18)
{
	static const char text[] = "a\r\nhalf\n";
	int fd = net_loop_client(&w, _i % 2);
	char part[16];

	snprintf(part, sizeof(part), "%.*s", _i / 2, text);
	net_loop_says(&w, fd, part);
	net_loop_told(&w, _i / 2 < 3 ? "" : _i / 2 < 8 ? "line 0.1 a\n" : "line 0.1 a\nline 0.1 half\n");
	net_loop_carries(&w);
	net_loop_says(&w, fd, text + _i / 2);
	net_loop_told(&w, _i / 2 < 3 ? "line 0.1 a\nline 0.1 half\n" : _i / 2 < 8 ? "line 0.1 half\n" : "");
	net_loop_at_rest(&w);
	close(fd);
}

LOOP_TEST(the_rest_of_a_line_that_is_too_long_is_dropped, 2)
{
	int fd = net_loop_client(&w, _i);
	char line[101];

	memset(line, 'x', 100);
	line[100] = '\0';
	net_loop_says(&w, fd, line);
	net_loop_told(&w, "toolong 0.1\n");
	net_loop_at_rest(&w);
	net_loop_carries(&w);
	net_loop_says(&w, fd, "y\nb\n");
	net_loop_told(&w, "line 0.1 b\n");
	close(fd);
}

LOOP_TEST(lines_that_wait_while_reading_is_off_wait_on, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = stop_at_b;
	net_loop_says(&w, fd, "a\nb\nc\nb\nd\nhal");
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\n");
	net_loop_packs(&w);
	net_loop_says(&w, fd, "f\n");
	net_loop_unpacks(&w);
	net_loop_at_rest(&w);
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 c\nline 0.1 b\n");
	net_loop_carries(&w);
	net_loop_at_rest(&w);
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 d\nline 0.1 half\n");
	close(fd);
}

LOOP_TEST(unsent_output_arrives_and_lines_behind_it_wait, 2)
{
	int fd = net_loop_client(&w, _i);

	/* TCP takes some 4 MiB. */
	w.conf.output_max = 16 * MUCH;
	net_set_limits(w.net, w.conf.output_max, w.conf.sessions_max, w.conf.connections_max, w.conf.peer_max);
	for (unsigned i = 0; i < 6; i++)
		net_send(w.net, w.session, much, MUCH);
	net_send(w.net, w.session, "END\n", 4);
	net_await_sent(w.net, w.session);
	net_loop_says(&w, fd, "a\n");
	net_loop_at_rest(&w);
	net_loop_carries(&w);
	net_loop_drains(&w, fd, 6 * MUCH);
	net_loop_hears(&w, fd, "END\n");
	net_loop_until(&w, buf_length(&w.told) == strlen("sent 0.1\nline 0.1 a\n")); /* either may come first */
	net_loop_settle(&w);
	buf_append(&w.told, "", 1);
	ck_assert(strstr(buf_begin(&w.told), "sent 0.1\n") && strstr(buf_begin(&w.told), "line 0.1 a\n"));
	buf_clear(&w.told);
	close(fd);
}

LOOP_TEST(output_that_was_not_flushed_arrives, 2)
{
	int fd = net_loop_client(&w, _i);

	net_send(w.net, w.session, "OK\n", 3);
	net_loop_carries(&w);
	net_loop_hears(&w, fd, "OK\n");
	close(fd);
}

LOOP_TEST(a_half_closed_session_still_gets_its_answer, 2)
{
	int fd = net_loop_client(&w, _i);

	net_loop_says(&w, fd, "a\n");
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "line 0.1 a\neof 0.1\n");
	net_loop_carries(&w);
	net_loop_at_rest(&w); /* eof is not told again */
	net_send(w.net, w.session, "OK\n", 3);
	net_hangup(w.net, w.session);
	net_loop_hears(&w, fd, "OK\n");
	net_loop_eof(&w, fd);
	close(fd);
}

LOOP_TEST(that_a_client_has_half_closed_is_told_once, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = stop_at_b;
	net_loop_says(&w, fd, "b\nc\n");
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "line 0.1 b\nhalf_closed 0.1\n");
	net_loop_carries(&w);
	net_loop_at_rest(&w);
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 c\neof 0.1\n");
	close(fd);
}

/* _i & 1: TCP; _i & 2: reading is off, so that only edges are watched. */
LOOP_TEST(what_came_while_there_was_no_net_is_noticed, 4)
{
	int fd = net_loop_client(&w, _i & 1), other = net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	if (_i & 2)
		net_read(w.net, FIRST, false);
	net_loop_at_rest(&w);
	net_loop_packs(&w);
	if (_i & 1)
		net_loop_resets(fd);
	else
		close(fd);
	net_loop_says(&w, other, "a\n");
	net_loop_unpacks(&w);
	net_loop_until(&w, net_sessions(w.net) == 1);
	buf_append(&w.told, "", 1);
	ck_assert_ptr_nonnull(strstr(buf_begin(&w.told), _i & 1 ? "gone 0.1 reset\n" : "gone 0.1 hangup\n"));
	buf_clear(&w.told);
	close(other);
}

LOOP_TEST(a_half_close_while_there_was_no_net_is_noticed, 4)
{
	int fd = net_loop_client(&w, _i & 1);

	if (_i & 2)
		net_read(w.net, w.session, false);
	net_loop_packs(&w);
	net_loop_says(&w, fd, "a\n");
	shutdown(fd, SHUT_WR);
	net_loop_unpacks(&w);
	net_loop_told(&w, _i & 2 ? "half_closed 0.1\n" : "line 0.1 a\neof 0.1\n");
	close(fd);
}

/* It was full, and only edges of it were watched. */
LOOP_TEST(a_socket_that_was_emptied_while_there_was_no_net_is_written, 2)
{
	static char got[65536];
	int fd = net_loop_client(&w, _i);
	size_t n = 0;
	ssize_t r;

	net_send(w.net, w.session, much, MUCH);
	net_loop_at_rest(&w);
	net_loop_packs(&w);
	while ((r = recv(fd, got, sizeof(got), MSG_DONTWAIT)) > 0)
		n += (size_t)r;
	net_loop_unpacks(&w);
	net_loop_drains(&w, fd, MUCH - n);
	net_loop_at_rest(&w);
	close(fd);
}

/* The sink was about to be told. */
LOOP_TEST(an_end_that_was_not_told_is_told_in_the_next_net, 2)
{
	int fd = net_loop_client(&w, _i);

	net_pause(w.net, true);
	for (unsigned i = 0; i < 4; i++)
		net_send(w.net, w.session, much, MUCH);
	net_loop_packs(&w);
	ck_assert_uint_eq(buf_length(&w.told), 0);
	net_loop_eof(&w, fd);
	net_loop_unpacks(&w);
	net_loop_told(&w, "gone 0.1 overflow\n");
	ck_assert_uint_eq(net_sessions(w.net), 0);
	close(fd);
}

LOOP_TEST(a_session_whose_descriptor_is_lost_is_gone, 2)
{
	int fd = net_loop_client(&w, _i), other = net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	net_loop_packs(&w);
	close(fdlist_take(&w.fds, 0));
	net_loop_unpacks(&w);
	net_loop_told(&w, "gone 0.1 restart\n");
	net_loop_says(&w, other, "a\n");
	net_loop_told(&w, "line 1.1 a\n");
	close(fd);
	close(other);
}
