/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/acceptor.c: too many connections, too few descriptors. */
#include "tests/fixture/net_loop.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct net_loop w;

static void setup(void)
{
	net_loop_init(&w, NET_LOOP_CONF);
}

static void teardown(void)
{
	net_loop_release(&w);
}

/* --- too many ------------------------------------------------------------------------------------------------------ */

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

LOOP_TEST(one_connection_too_many_gets_a_line_and_is_closed, 2)
{
	unsigned sessions[NET_TRANSPORTS];
	struct net_counts counts;
	int a, b, c;

	net_loop_again(&w, 2);
	b = net_loop_tcp(&w);
	net_loop_told(&w, "open 0.1\n");
	a = net_loop_unix(&w);
	net_loop_told(&w, "open 1.1\n");
	c = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	net_loop_says(&w, c, "PING\n"); /* unread input must not turn the line into a reset */
	net_loop_hears(&w, c, "ERR LIMIT clients=2 too many connections\n");
	net_loop_eof(&w, c);
	close(c);
	net_loop_until(&w, net_closing(w.net) == 0);
	net_loop_at_rest(&w);
	net_counts(w.net, &counts);
	ck_assert_uint_eq(counts.refused, 1);
	ck_assert_uint_eq(counts.accepted[NET_UNIX], 1);
	ck_assert_uint_eq(counts.accepted[NET_TCP], 1);
	net_sessions_by(w.net, sessions);
	ck_assert_mem_eq(sessions, ((unsigned[]){[NET_UNIX] = 1, [NET_TCP] = 1, [NET_TLS] = 0}), sizeof(sessions));
	close(b);
	net_loop_told(&w, "eof 0.1\n");
	net_hangup(w.net, UINT64_C(1) << 32);
	b = net_loop_unix(&w);
	net_loop_told(&w, "open 0.2\n");
	close(a);
	close(b);
}

LOOP_TEST(many_connections_too_many_hold_nothing, 2)
{
	struct net_counts counts;
	int fd[200], i;

	net_loop_again(&w, 1);
	for (i = 0; i < 200; i++) {
		fd[i] = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
		net_loop_says(&w, fd[i], "PING\n");
		net_loop_settle(&w);
		ck_assert_uint_le(net_closing(w.net), 64);
	}
	net_loop_until(&w, (net_counts(w.net, &counts), counts.refused == 199));
	for (i = 1; i < 200; i++) {
		net_loop_hears(&w, fd[i], "ERR LIMIT clients=1 too many connections\n");
		net_loop_eof(&w, fd[i]);
	}
	/* None of them closes, and still they are gone after a second. */
	net_loop_until(&w, net_closing(w.net) == 0);
	close(fd[1]);
	fd[1] = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	net_loop_until(&w, net_closing(w.net) == 1);
	for (i = 0; i < 200; i++)
		close(fd[i]);
	net_loop_settle(&w);
	buf_clear(&w.told);
}

TEST(the_last_sessions_are_kept_for_the_administrator)
{
	int a, b, c, own;

	net_loop_again(&w, 3);
	a = net_loop_tcp(&w);
	net_loop_told(&w, "open 0.1\n");
	b = net_loop_tcp(&w);
	net_loop_told(&w, "open 1.1\n");
	c = net_loop_tcp(&w);
	net_loop_hears(&w, c, "ERR LIMIT clients=3 too many connections; kept for root and the user of the daemon: 1\n");
	net_loop_eof(&w, c);
	own = net_loop_unix(&w);
	net_loop_told(&w, "open 2.1\n");
	close(a);
	close(b);
	close(c);
	close(own);
	net_loop_settle(&w);
	buf_clear(&w.told);
}

/* --- a share of the descriptors ------------------------------------------------------------------------------------ */

TEST(sessions_get_no_more_than_the_descriptors_for_connections)
{
	int a, b, c;

	net_set_limits(w.net, 4096, 100, 2, w.conf.peer_max);
	a = net_loop_unix(&w);
	net_loop_told(&w, "open 0.1\n");
	b = net_loop_unix(&w);
	net_loop_told(&w, "open 1.1\n");
	c = net_loop_unix(&w);
	net_loop_hears(&w, c, "ERR LIMIT clients=2 too many connections\n");
	net_loop_eof(&w, c);
	ck_assert_uint_eq(net_closing(w.net), 0); /* no refused connection keeps a third descriptor */
	close(a);
	close(b);
	close(c);
	net_loop_settle(&w);
	buf_clear(&w.told);
}

TEST(a_closing_connection_gives_its_share_to_a_new_one)
{
	int old, new;

	net_set_limits(w.net, 4096, 100, 1, w.conf.peer_max);
	old = net_loop_unix(&w);
	net_loop_told(&w, "open 0.1\n");
	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	net_loop_settle(&w);
	ck_assert_uint_eq(net_closing(w.net), 1);
	new = net_loop_unix(&w);
	net_loop_told(&w, "open 0.2\n");
	ck_assert_uint_eq(net_closing(w.net), 0);
	net_loop_hears(&w, old, "BYE\n");
	net_loop_eof(&w, old);
	close(old);
	close(new);
}

/* --- no descriptors ------------------------------------------------------------------------------------------------ */

static struct rlimit usual;

/* Leaves n free descriptors. */
static void descriptors_leave(int n)
{
	int top = open("/dev/null", O_RDONLY), i;
	struct rlimit few;

	/* No hole is left below top; top itself is the first of the n. */
	for (i = 0; i < top; i++)
		if (fcntl(i, F_GETFD) < 0)
			ck_assert_int_ge(dup2(top, i), 0);
	close(top);
	getrlimit(RLIMIT_NOFILE, &usual);
	few = (struct rlimit){(rlim_t)(top + n), usual.rlim_max};
	ck_assert(!setrlimit(RLIMIT_NOFILE, &few));
}

TEST(without_descriptors_accepting_pauses_and_goes_on_when_there_are_some)
{
	int fd[6], i;

	for (i = 0; i < 6; i++)
		fd[i] = i % 2 ? net_loop_tcp(&w) : net_loop_unix(&w);
	descriptors_leave(2);
	net_loop_until(&w, net_loop_counts(&w).pauses == 1);
	ck_assert_uint_eq(w.opened, 2);
	buf_clear(&w.told);
	net_loop_at_rest(&w); /* it waits for its timer, and does not spin */
	net_send(w.net, UINT64_C(1) << 32, "OK\n", 3);
	net_loop_until(&w, net_loop_counts(&w).pauses == 3);
	ck_assert_uint_eq(w.opened, 2);
	setrlimit(RLIMIT_NOFILE, &usual);
	net_loop_until(&w, w.opened == 6);
	ck_assert_uint_eq(net_loop_counts(&w).refused, 0);
	for (i = 0; i < 6; i++)
		close(fd[i]);
	net_loop_settle(&w);
	buf_clear(&w.told);
}

TEST(a_peer_that_waits_too_long_for_a_descriptor_is_refused)
{
	char expected[100];
	struct rlimit few;
	int fd = net_loop_unix(&w), other = net_loop_unix(&w);

	descriptors_leave(0);
	getrlimit(RLIMIT_NOFILE, &few);
	snprintf(expected, sizeof(expected), "ERR LIMIT descriptors=%llu no descriptor left for another connection\n",
		 (unsigned long long)few.rlim_cur);
	net_loop_hears(&w, fd, expected);
	net_loop_eof(&w, fd);
	ck_assert_uint_eq(net_loop_counts(&w).refused, 1);
	/* The descriptor that was used for the refusal is there for the next one. */
	net_loop_hears(&w, other, expected);
	net_loop_eof(&w, other);
	ck_assert_uint_eq(net_loop_counts(&w).refused, 2);
	ck_assert_uint_eq(w.opened, 0);
	setrlimit(RLIMIT_NOFILE, &usual);
	close(fd);
	close(other);
	fd = net_loop_unix(&w);
	net_loop_told(&w, "open 0.1\n");
	close(fd);
}

TEST(a_closing_connection_gives_its_descriptor_to_a_new_one)
{
	int old = net_loop_unix(&w), new;

	net_loop_told(&w, "open 0.1\n");
	new = net_loop_unix(&w);
	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	descriptors_leave(0);
	net_loop_told(&w, "open 0.2\n");
	setrlimit(RLIMIT_NOFILE, &usual);
	ck_assert_uint_eq(net_loop_counts(&w).pauses, 0);
	net_loop_hears(&w, old, "BYE\n");
	net_loop_eof(&w, old);
	close(old);
	close(new);
}
