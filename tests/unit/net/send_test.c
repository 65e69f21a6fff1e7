/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/conn.c: output. */
#include "daemon/net/turns.h"
#include "tests/fixture/much_output.h"

#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = much_is_ready, .teardown = much_is_over, .seconds = 60)

LOOP_TEST(bytes_go_out_at_flush_and_in_order, 2)
{
	int fd = net_loop_client(&w, _i);
	char c;

	net_send(w.net, w.session, "OK 1\n", 5);
	net_send(w.net, w.session, "", 0);
	net_send(w.net, w.session, "OK 2\n", 5);
	ck_assert_int_eq(recv(fd, &c, 1, MSG_DONTWAIT), -1);
	net_flush(w.net);
	net_loop_hears(&w, fd, "OK 1\nOK 2\n");
	close(fd);
}

static unsigned slow_writes;

static void takes_its_time(struct net_loop *world)
{
	(void)world;
	slow_writes++;
	usleep(2000);
}

LOOP_TEST(a_flush_that_takes_long_leaves_the_rest_to_the_passes_that_follow, 2)
{
	enum { N = 3 * HUB_FLUSH_LOOK };
	uint64_t session[N];
	int fd[N];

	for (unsigned i = 0; i < N; i++) {
		fd[i] = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
		session[i] = w.session;
	}
	buf_clear(&w.told);
	w.on_writing = takes_its_time;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < N; i++)
			net_send(w.net, session[i], "OK\n", 3);
		slow_writes = 0;
		net_flush(w.net);
		ck_assert_uint_eq(slow_writes, HUB_FLUSH_LOOK);
		if (round == 1)
			net_flush_all(w.net);
		else
			net_loop_settle(&w);
		ck_assert_uint_eq(slow_writes, N);
		for (unsigned i = 0; i < N; i++)
			net_loop_hears(&w, fd[i], "OK\n");
	}
	for (unsigned i = 0; i < N; i++)
		close(fd[i]);
}

static int reader;
static size_t arrived; /* how many bytes had left when the sink was last told of writing */
static unsigned writings;

static void look_at_reader(struct net_loop *world)
{
	static char seen[MUCH];
	ssize_t n = recv(reader, seen, sizeof(seen), MSG_DONTWAIT);

	(void)world;
	arrived += n > 0 ? (size_t)n : 0;
	writings++;
}

/* Bytes leave at a flush, sooner when there are many, and when the other end has made room. */
LOOP_TEST(before_bytes_leave_it_is_told_whenever_they_do, 2)
{
	reader = net_loop_client(&w, _i);
	arrived = writings = 0;
	w.on_writing = look_at_reader;
	net_send(w.net, w.session, "OK\n", 3);
	ck_assert_uint_eq(writings, 0);
	net_flush(w.net);
	ck_assert(writings == 1 && arrived == 0);
	net_loop_hears(&w, reader, "OK\n");
	net_send(w.net, w.session, much, MUCH);
	ck_assert(writings == 2 && arrived == 0);
	look_at_reader(&w);
	ck_assert_uint_gt(arrived, 0);
	if (_i == 0) /* TCP may take all of it at once */
		net_loop_until(&w, writings > 3);
	close(reader);
}

LOOP_TEST(a_slow_reader_gets_all_of_it_and_keeps_nobody_busy_meanwhile, 2)
{
	int fd = net_loop_client(&w, _i);

	net_send(w.net, w.session, much, MUCH);
	net_send(w.net, w.session, "END\n", 4);
	net_loop_at_rest(&w);
	net_loop_drains(&w, fd, MUCH);
	net_loop_hears(&w, fd, "END\n");
	net_loop_at_rest(&w);
	close(fd);
}

LOOP_TEST(a_slow_reader_gets_all_of_it_also_after_it_half_closed, 2)
{
	const char *late = "";
	int fd = net_loop_client(&w, _i);

	net_send(w.net, w.session, much, MUCH);
	net_loop_at_rest(&w);
	shutdown(fd, SHUT_WR);
	net_loop_until(&w, buf_length(&w.told) > 0);
	/* The socket takes nearly all of it, so there is nothing to wait for. */
	if (*buf_begin(&w.told) == 'e') {
		net_loop_told(&w, "eof 0.1\n");
	} else {
		net_loop_told(&w, "half_closed 0.1\n");
		late = "eof 0.1\n";
	}
	net_loop_at_rest(&w);
	net_send(w.net, w.session, "END\n", 4);
	net_loop_drains(&w, fd, MUCH);
	net_loop_told(&w, late);
	net_loop_hears(&w, fd, "END\n");
	close(fd);
}

LOOP_TEST(a_peer_that_does_not_read_overflows_and_is_told_gone_by_the_loop, 2)
{
	struct net_counts counts;
	int fd = net_loop_client(&w, _i), i;

	for (i = 0; i < 16; i++)
		net_send(w.net, w.session, much, MUCH);
	ck_assert_uint_eq(buf_length(&w.told), 0);
	ck_assert_uint_eq(net_sessions(w.net), 1);
	net_loop_told(&w, "gone 0.1 overflow\n");
	ck_assert_uint_eq(net_sessions(w.net), 0);
	net_send(w.net, w.session, "late\n", 5);
	net_counts(w.net, &counts);
	ck_assert_uint_lt(counts.bytes_out, 8 * MUCH);
	net_loop_at_rest(&w);
	close(fd);
}

/* One pass may produce more than fits, as long as the socket takes it. */
LOOP_TEST(a_burst_beyond_the_bound_to_a_socket_with_room_is_no_overflow, 2)
{
	struct net_conf conf = NET_LOOP_CONF;
	int fd, i;

	net_loop_release(&w);
	conf.output_max = 4096;
	net_loop_init(&w, conf);
	fd = net_loop_client(&w, _i);
	for (i = 0; i < 20; i++)
		net_send(w.net, w.session, much, 4000);
	net_loop_settle(&w);
	net_loop_told(&w, "");
	net_loop_drains(&w, fd, 80000);
	close(fd);
}

static void overflow(struct net_loop *world, uint64_t session, const char *line)
{
	int i;

	(void)line;
	for (i = 0; i < 16; i++)
		net_send(world->net, session, much, MUCH);
}

LOOP_TEST(an_overflow_inside_a_callback_ends_the_telling_of_lines, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = overflow;
	net_loop_says(&w, fd, "a\nb\n");
	net_loop_told(&w, "line 0.1 a\ngone 0.1 overflow\n");
	close(fd);
}

LOOP_TEST(a_full_socket_is_no_error, 2)
{
	int fd = net_loop_client(&w, _i), i;

	for (i = 0; i < 200; i++) {
		net_send(w.net, w.session, much, 4096);
		net_loop_settle(&w);
	}
	net_loop_at_rest(&w);
	net_loop_drains(&w, fd, (size_t)200 * 4096);
	close(fd);
}

LOOP_TEST(many_slow_readers_at_a_time_get_all_of_it, 2)
{
	enum { N = 80 };
	static uint64_t session[N];
	static int fd[N];
	int i;

	for (i = 0; i < N; i++) {
		fd[i] = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
		net_loop_until(&w, w.opened == (unsigned)i + 1);
		session[i] = w.session;
	}
	for (i = 0; i < N; i++)
		net_send(w.net, session[i], much, 4096);
	net_loop_settle(&w);
	for (i = 0; i < N; i++) {
		net_loop_drains(&w, fd[i], 4096);
		close(fd[i]);
	}
	buf_clear(&w.told);
}
