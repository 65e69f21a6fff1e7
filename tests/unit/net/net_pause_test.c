/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/carry.c: a pause, that is taken back or is not. */
#include "tests/fixture/much_output.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(in_a_pause_no_line_is_told_and_afterwards_all_in_order)
{
	int fd = net_loop_client(&w, _i);

	net_loop_says(&w, fd, "a\nha");
	net_loop_told(&w, "line 0.1 a\n");
	net_pause(w.net, true);
	net_loop_says(&w, fd, "lf\nb\n");
	net_loop_at_rest(&w);
	net_send(w.net, w.session, "OK\n", 3);
	net_loop_hears(&w, fd, "OK\n");
	net_loop_says(&w, fd, "c\n");
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_told(&w, "line 0.1 half\nline 0.1 b\nline 0.1 c\n");
	net_loop_says(&w, fd, "d\n");
	net_loop_told(&w, "line 0.1 d\n");
	net_loop_at_rest(&w);
	close(fd);
}
END_TEST

static void pauses_at_b(struct net_loop *world, uint64_t session, const char *line)
{
	(void)session;
	if (!strcmp(line, "b"))
		net_pause(world->net, true);
}

START_TEST(a_pause_inside_a_callback_holds_the_lines_behind_it_and_the_end)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = pauses_at_b;
	net_loop_says(&w, fd, "a\nb\nc\n");
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\n");
	net_loop_at_rest(&w);
	if (_i)
		net_loop_carries(&w);
	else
		net_pause(w.net, false);
	net_loop_told(&w, "line 0.1 c\neof 0.1\n");
	close(fd);
}
END_TEST

START_TEST(in_a_pause_clients_wait_in_the_backlog)
{
	int fd;

	net_pause(w.net, true);
	fd = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	net_loop_says(&w, fd, "a\n");
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_told(&w, "open 0.1\nline 0.1 a\n");
	close(fd);
}
END_TEST

START_TEST(what_happens_in_a_pause_that_is_taken_back_is_told_afterwards)
{
	int closes = net_loop_client(&w, 0), halves = net_loop_unix(&w), off;

	net_loop_told(&w, "open 1.1\n");
	off = net_loop_unix(&w);
	net_loop_told(&w, "open 2.1\n");
	net_read(w.net, w.session, false);
	net_pause(w.net, true);
	net_loop_says(&w, closes, "a\n");
	close(closes);
	net_loop_says(&w, halves, "b\n");
	shutdown(halves, SHUT_WR);
	close(off);
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_until(&w, buf_length(&w.told) >= 70);
	net_loop_settle(&w);
	buf_append(&w.told, "", 1);
	ck_assert_ptr_nonnull(strstr(buf_begin(&w.told), "line 0.1 a\n"));
	ck_assert_ptr_nonnull(strstr(strstr(buf_begin(&w.told), "line 0.1 a\n"), "gone 0.1 hangup\n"));
	ck_assert_ptr_nonnull(strstr(buf_begin(&w.told), "line 1.1 b\n"));
	ck_assert_ptr_nonnull(strstr(strstr(buf_begin(&w.told), "line 1.1 b\n"), "eof 1.1\n"));
	ck_assert_ptr_nonnull(strstr(buf_begin(&w.told), "gone 2.1 hangup\n"));
	buf_clear(&w.told);
	close(halves);
}
END_TEST

/* A write in the pause finds that the client is gone. Its lines were said before. */
START_TEST(a_write_to_a_client_that_is_gone_loses_none_of_its_lines)
{
	int fd = net_loop_client(&w, 0);

	net_pause(w.net, true);
	net_loop_says(&w, fd, "a\nb\n");
	close(fd);
	net_send(w.net, w.session, "OK\n", 3);
	net_loop_at_rest(&w);
	if (_i)
		net_loop_carries(&w);
	else
		net_pause(w.net, false);
	net_loop_told(&w, "half_closed 0.1\nline 0.1 a\nline 0.1 b\ngone 0.1 hangup\n");
}
END_TEST

Suite *net_pause_suite(void)
{
	Suite *s = suite_create("net_pause");
	TCase *t = tcase_create("carry");

	tcase_add_checked_fixture(t, much_is_ready, much_is_over);
	tcase_set_timeout(t, 60);
	/* 0: Unix, 1: TCP. */
	tcase_add_loop_test(t, in_a_pause_no_line_is_told_and_afterwards_all_in_order, 0, 2);
	tcase_add_loop_test(t, a_pause_inside_a_callback_holds_the_lines_behind_it_and_the_end, 0, 2);
	tcase_add_loop_test(t, in_a_pause_clients_wait_in_the_backlog, 0, 2);
	tcase_add_test(t, what_happens_in_a_pause_that_is_taken_back_is_told_afterwards);
	tcase_add_loop_test(t, a_write_to_a_client_that_is_gone_loses_none_of_its_lines, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
