/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net: a client that says little does not wait for one that says much. No line is lost or changes its order for it. */
#include "tests/fixture/net_loop.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 3000u
#define OUTPUT_MOST 65536
#define TURN 8 /* lines; and connections that are accepted */

static struct net_loop w;

static void setup(void)
{
	net_loop_init(&w, NET_LOOP_CONF);
}

static void teardown(void)
{
	net_loop_release(&w);
}

static char *many_lines(void)
{
	char *lines = calloc(MANY, 16);

	for (unsigned i = 0, n = 0; i < MANY; i++)
		n += (unsigned)sprintf(lines + n, "a%u\n", i);
	return lines;
}

/* How often a stands in what was told before b. */
static unsigned before(const char *a, const char *b)
{
	const char *at = buf_begin(&w.told), *end = strstr(at, b);
	unsigned n = 0;

	ck_assert_ptr_nonnull(end);
	for (; (at = strstr(at, a)) && at < end; at++)
		n++;
	return n;
}

static void heard_all(void)
{
	net_loop_settle(&w);
	buf_append(&w.told, "", 1);
}

static const size_t lengths[] = {5000, 20000}; /* the second is more than a quarter of OUTPUT_MOST, so it is written at once */
static size_t length;

static void answers_at_length(struct net_loop *world, uint64_t session, const char *line)
{
	static const char much[20000] = "x";

	if (line[0] == 'a')
		net_send(world->net, session, much, length);
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_short_request_waits_for_one_share_of_each_busy_session)
{
	char *lines = many_lines();
	int a = net_loop_unix(&w), b;

	net_loop_told(&w, "open 0.1\n");
	b = net_loop_unix(&w);
	net_loop_told(&w, "open 1.1\n");
	net_loop_says(&w, a, lines);
	net_loop_says(&w, b, "b\n");
	heard_all();
	ck_assert_uint_le(before("line 0.1 ", "line 1.1 b\n"), TURN);
	ck_assert_uint_eq(w.lines, MANY + 1);
	buf_clear(&w.told);
	free(lines);
	close(a);
	close(b);
}

LOOP_TEST(a_long_answer_ends_a_share, sizeof(lengths) / sizeof(*lengths))
{
	int a = net_loop_unix(&w), b;

	length = lengths[_i];
	net_set_limits(w.net, OUTPUT_MOST, 100, 100, w.conf.peer_max);
	net_loop_told(&w, "open 0.1\n");
	b = net_loop_unix(&w);
	net_loop_told(&w, "open 1.1\n");
	w.on_line = answers_at_length;
	net_loop_says(&w, a, "a\na\na\na\na\na\n");
	net_loop_says(&w, b, "b\n");
	heard_all();
	ck_assert_uint_le(before("line 0.1 ", "line 1.1 b\n"), 1);
	ck_assert_uint_eq(w.lines, 7);
	buf_clear(&w.told);
	close(a);
	close(b);
}

LOOP_TEST(lines_over_many_shares_are_told_in_order_and_their_end_comes_last, 2)
{
	char *lines = many_lines();
	int a = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	const char *at;

	net_loop_told(&w, "open 0.1\n");
	net_loop_says(&w, a, lines);
	shutdown(a, SHUT_WR);
	heard_all();
	at = buf_begin(&w.told);
	for (unsigned i = 0; i < MANY; i++) {
		char line[32];
		size_t n = (size_t)sprintf(line, "line 0.1 a%u\n", i);

		ck_assert_int_eq(strncmp(at, line, n), 0);
		at += n;
	}
	ck_assert_str_eq(at, "eof 0.1\n");
	buf_clear(&w.told);
	free(lines);
	close(a);
}

TEST(lines_before_a_hang_up_share_with_others_and_the_end_comes_last)
{
	char *lines = many_lines();
	int a = net_loop_unix(&w), b;

	net_loop_told(&w, "open 0.1\n");
	b = net_loop_unix(&w);
	net_loop_told(&w, "open 1.1\n");
	net_loop_says(&w, a, lines);
	close(a);
	net_loop_says(&w, b, "b\n");
	heard_all();
	ck_assert_uint_le(before("line 0.1 ", "line 1.1 b\n"), TURN);
	ck_assert_uint_eq(before("line 0.1 ", "half_closed 0.1\n"), 0);
	ck_assert_uint_eq(before("line 0.1 ", "gone 0.1 hangup\n"), MANY);
	ck_assert_uint_eq(w.lines, MANY + 1);
	buf_clear(&w.told);
	free(lines);
	close(b);
}

TEST(sessions_are_read_between_new_connections)
{
	int fd = net_loop_unix(&w), others[100];

	net_loop_told(&w, "open 0.1\n");
	for (unsigned i = 0; i < 100; i++)
		others[i] = net_loop_unix(&w);
	net_loop_says(&w, fd, "b\n");
	heard_all();
	ck_assert_uint_le(before("open ", "line 0.1 b\n"), TURN);
	buf_clear(&w.told);
	for (unsigned i = 0; i < 100; i++)
		close(others[i]);
	close(fd);
}

/* As the service does whose step takes long. */
static void takes_long(struct net_loop *world, uint64_t session, const char *line)
{
	(void)session, (void)line;
	event_base_loopbreak(world->base);
}

/* More of the one peer than the kernel reports at once: the other's is behind them all. In the second case each has several lines. */
LOOP_TEST(who_asks_behind_many_of_another_peer_waits_for_a_turn_of_theirs, 2)
{
	enum { N = 300 };
	int fd[N], b;

	net_loop_again(&w, 2 * N);
	w.on_line = takes_long;
	for (unsigned i = 0; i < N; i++) {
		fd[i] = net_loop_tcp(&w);
		net_loop_until(&w, w.opened == i + 1);
	}
	b = net_loop_unix(&w);
	net_loop_until(&w, w.opened == N + 1);
	buf_clear(&w.told);
	for (unsigned i = 0; i < N; i++)
		net_loop_says(&w, fd[i], _i ? "a\na\na\na\n" : "a\n");
	net_loop_says(&w, b, "b\n");
	heard_all();
	ck_assert_uint_le(before(" a\n", " b\n"), 2 * TURN);
	ck_assert_uint_eq(w.lines, _i ? 4 * N + 1 : N + 1);
	buf_clear(&w.told);
	for (unsigned i = 0; i < N; i++)
		close(fd[i]);
	close(b);
}

/* Each has more lines than one turn takes. */
TEST(lines_before_a_hang_up_are_heard_though_others_take_long)
{
	enum { N = 20, LINES = 30 };
	char lines[2 * LINES + 1] = "";
	int fd[N];

	for (unsigned i = 0; i < LINES; i++)
		memcpy(lines + 2 * i, "a\n", 3);
	w.on_line = takes_long;
	for (unsigned i = 0; i < N; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
	}
	for (unsigned i = 0; i < N; i++)
		net_loop_says(&w, fd[i], lines);
	net_loop_pass(&w);
	net_loop_pass(&w);
	for (unsigned i = 0; i < N; i++)
		close(fd[i]);
	net_loop_until(&w, net_sessions(w.net) == 0);
	ck_assert_uint_eq(w.lines, N * LINES);
	buf_clear(&w.told);
}

/* Those that did not reset their connections are heard. After a half-close a TCP session goes on. */
TEST(those_that_wait_to_be_read_may_end_meanwhile)
{
	enum { N = 100 };
	int fd[N];

	net_loop_again(&w, 2 * N);
	w.on_line = takes_long;
	for (unsigned i = 0; i < N; i++) {
		fd[i] = i % 2 ? net_loop_tcp(&w) : net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
	}
	for (unsigned i = 0; i < N; i++)
		net_loop_says(&w, fd[i], "a\n");
	net_loop_pass(&w);
	for (unsigned i = 0; i < N; i++) {
		if (i % 4 == 1)
			net_loop_resets(fd[i]);
		else
			close(fd[i]);
	}
	net_loop_until(&w, net_sessions(w.net) == N / 4);
	net_loop_settle(&w);
	ck_assert_uint_ge(w.lines, N - N / 4);
	buf_clear(&w.told);
}
