/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/conn.c while output is unsent: a client that asks faster than it reads waits. Only pushes can overflow. */
#include "tests/fixture/net_loop.h"

#include <check.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER ((size_t)8000)
#define ASKED  2000u
#define MARK   ((size_t)128 * 1024)
#define LEAST  ((size_t)64 * 1024)
#define MANY   78u
#define LARGE   ((size_t)1024 * 1024)
#define BEHIND  20u
#define PORTION ((size_t)512 * 1024)

static struct net_loop w;
static char much[ANSWER];
static size_t answered;

static void answers(struct net_loop *world, uint64_t session, const char *line)
{
	answered += ANSWER;
	(void)line;
	net_send(world->net, session, much, ANSWER);
}

static void setup(void)
{
	struct net_conf conf = NET_LOOP_CONF;

	conf.output_max = 4 * MARK;
	memset(much, 'x', sizeof(much));
	answered = 0;
	net_loop_init(&w, conf);
	w.on_line = answers;
}

static void teardown(void)
{
	net_loop_release(&w);
}

static int client(int i)
{
	int fd = net_loop_client(&w, i);

	w.quiet = true;
	return fd;
}

/* All questions at once, and reads nothing; comes to rest when the socket takes no more. */
static void asks(int fd)
{
	static char lines[2 * ASKED + 1];

	for (unsigned i = 0; i < ASKED; i++)
		memcpy(lines + (size_t)2 * i, "?\n", 2);
	net_loop_says(&w, fd, lines);
	net_loop_until(&w, answered > MARK);
	net_loop_at_rest(&w);
	ck_assert_uint_lt(w.lines, ASKED);
	w.quiet = false;
}

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

LOOP_TEST(requests_wait_while_their_answers_are_unread_and_all_are_answered, 2)
{
	int fd = client(_i);
	struct net_counts counts;

	asks(fd);
	net_counts(w.net, &counts);
	ck_assert_uint_le(answered - counts.bytes_out, MARK + ANSWER);
	w.quiet = true;
	net_loop_drains(&w, fd, ASKED * ANSWER);
	ck_assert_uint_eq(w.lines, ASKED);
	w.quiet = false;
	net_loop_at_rest(&w);
	close(fd);
}

LOOP_TEST(pushes_still_go_out_and_they_alone_can_overflow, 2)
{
	struct net_counts counts;
	int fd = client(_i);
	unsigned i = 0;

	asks(fd);
	net_counts(w.net, &counts);
	for (; answered - counts.bytes_out + ANSWER <= 4 * MARK; i++)
		answers(&w, w.session, "");
	ck_assert_uint_gt(i, 0);
	net_loop_at_rest(&w);
	net_send(w.net, w.session, much, ANSWER);
	net_loop_told(&w, "gone 0.1 overflow\n");
	close(fd);
}

static bool told(const char *text)
{
	return memmem(buf_begin(&w.told), buf_length(&w.told), text, strlen(text));
}

/* Sends it answers until so many bytes are unsent. Returns how many are. */
static size_t falls_behind(uint64_t session, size_t least)
{
	struct net_counts before, now;
	size_t sent = 0, unsent = 0;

	net_counts(w.net, &before);
	for (; unsent < least; unsent = sent - (size_t)(now.bytes_out - before.bytes_out)) {
		net_send(w.net, session, much, ANSWER);
		sent += ANSWER;
		net_counts(w.net, &now);
	}
	return unsent;
}

TEST(of_all_that_are_behind_those_go_that_are_so_most)
{
	struct net_conf conf = NET_LOOP_CONF;
	int fd[MANY], calm;
	uint64_t quiet;
	size_t behind;

	net_loop_release(&w);
	conf.output_max = LEAST;
	net_loop_init(&w, conf);
	calm = net_loop_unix(&w);
	net_loop_until(&w, w.opened == 1);
	quiet = w.session;
	behind = falls_behind(quiet, LEAST / 2);
	for (unsigned i = 0; i < MANY; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 2);
		behind += falls_behind(w.session, LEAST - ANSWER + 1);
	}
	ck_assert_uint_gt(behind, HELD_WHOLE * LEAST);
	net_loop_settle(&w);
	ck_assert(told(" overflow\n"));
	ck_assert(!told("gone 0.1 "));
	buf_clear(&w.told);
	net_loop_drains(&w, calm, 2 * ANSWER);
	close(calm);
	for (unsigned i = 0; i < MANY; i++)
		close(fd[i]);
}

/* The same of lines that do not end. */
TEST(of_all_that_keep_lines_open_those_go_whose_are_longest)
{
	static char line[LEAST];
	struct net_conf conf = NET_LOOP_CONF;
	struct net_counts counts = {0};
	int fd[MANY], calm;
	uint64_t in = 0;

	net_loop_release(&w);
	conf.output_max = LEAST;
	conf.line_max = LEAST;
	net_loop_init(&w, conf);
	w.on_line = net_loop_says_ok;
	memset(line, 'x', LEAST - ANSWER);
	calm = net_loop_unix(&w);
	net_loop_says(&w, calm, "PIN");
	for (unsigned i = 0; i < MANY; i++) {
		fd[i] = net_loop_unix(&w);
		in = counts.bytes_in;
		net_loop_says(&w, fd[i], line);
		for (; counts.bytes_in < in + LEAST - ANSWER; net_counts(w.net, &counts))
			net_loop_pass(&w);
	}
	net_loop_settle(&w);
	ck_assert(told(" overflow\n"));
	ck_assert(!told("gone 0.1 "));
	net_loop_says(&w, calm, "G\n");
	net_loop_until(&w, told("line 0.1 PING\n"));
	close(calm);
	for (unsigned i = 0; i < MANY; i++)
		close(fd[i]);
}

/* A buffer that is a little more than half full takes as much memory as a full one. */
TEST(memory_counts_and_not_what_is_in_it)
{
	static char line[LEAST / 2 + 1024];
	struct net_conf conf = NET_LOOP_CONF;
	int fd[MANY];

	net_loop_release(&w);
	conf.output_max = LEAST;
	conf.line_max = LEAST;
	net_loop_init(&w, conf);
	memset(line, 'x', sizeof(line) - 1);
	ck_assert_uint_lt(MANY * sizeof(line), HELD_WHOLE * LEAST);
	for (unsigned i = 0; i < MANY; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_says(&w, fd[i], line);
		net_loop_settle(&w);
	}
	ck_assert(told(" overflow\n"));
	buf_clear(&w.told);
	for (unsigned i = 0; i < MANY; i++)
		close(fd[i]);
}

/*
 * A user of the Unix socket has many, and an address one that is larger than each of them. What the address has read
 * counts no more.
 */
TEST(of_all_peers_the_one_that_has_most_loses_its_greatest)
{
	static char line[LEAST];
	struct net_conf conf = NET_LOOP_CONF;
	struct net_counts counts = {0};
	int fd[MANY], calm;
	uint64_t in;

	net_loop_release(&w);
	conf.output_max = LEAST;
	conf.line_max = LEAST;
	net_loop_init(&w, conf);
	w.on_line = answers;
	calm = client(1);
	asks(calm);
	w.quiet = true;
	net_loop_drains(&w, calm, ASKED * ANSWER);
	w.quiet = false;
	memset(line, 'x', LEAST - ANSWER / 2);
	for (unsigned i = 0; i < MANY; i++) {
		net_counts(w.net, &counts);
		in = counts.bytes_in;
		if (i > 0)
			fd[i] = net_loop_unix(&w);
		net_loop_says(&w, i > 0 ? fd[i] : calm, line);
		for (; counts.bytes_in < in + strlen(line); net_counts(w.net, &counts))
			net_loop_pass(&w);
		line[LEAST - ANSWER] = '\0';
	}
	net_loop_settle(&w);
	ck_assert(told(" overflow\n"));
	ck_assert(!told("gone 0.1 "));
	close(calm);
	for (unsigned i = 1; i < MANY; i++)
		close(fd[i]);
}

/* The kernel takes 0.1 to 0.3 ms for each MiB that it gets back, and nobody is served meanwhile. */
TEST(memory_of_many_that_end_together_is_given_back_in_portions)
{
	struct net_conf conf = NET_LOOP_CONF;
	int fd[BEHIND];
	uint64_t session[BEHIND];
	size_t at_first, before;

	net_loop_release(&w);
	conf.output_max = LARGE;
	net_loop_init(&w, conf);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX); /* as the daemon does, so that large buffers are mapped */
	at_first = mallinfo2().hblkhd;
	for (unsigned i = 0; i < BEHIND; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
		session[i] = w.session;
		(void)falls_behind(session[i], LARGE - 2 * ANSWER);
	}
	before = mallinfo2().hblkhd;
	for (unsigned i = 0; i < BEHIND; i++)
		for (unsigned k = 0; k < 4; k++)
			net_send(w.net, session[i], much, ANSWER); /* they overflow */
	ck_assert_uint_ge(mallinfo2().hblkhd + PORTION, before);
	w.quiet = true;
	for (size_t now = before; net_sessions(w.net) > 0 || now > at_first + PORTION; before = now) {
		net_loop_pass(&w);
		now = mallinfo2().hblkhd;
		ck_assert_uint_ge(now + PORTION, before);
	}
	for (unsigned i = 0; i < BEHIND; i++)
		close(fd[i]);
}

LOOP_TEST(a_hang_up_is_noticed_while_requests_wait_for_their_reader, 2)
{
	int fd = client(_i);

	asks(fd);
	if (_i)
		net_loop_resets(fd);
	else
		close(fd);
	net_loop_told(&w, _i ? "gone 0.1 reset\n" : "gone 0.1 hangup\n");
}

LOOP_TEST(a_half_close_is_told_while_requests_wait_for_their_reader_and_loses_none, 2)
{
	int fd = client(_i);

	asks(fd);
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "half_closed 0.1\n");
	net_loop_at_rest(&w);
	net_loop_drains(&w, fd, ASKED * ANSWER);
	net_loop_settle(&w);
	ck_assert_uint_eq(w.lines, ASKED);
	ck_assert_mem_eq(buf_begin(&w.told) + buf_length(&w.told) - 8, "eof 0.1\n", 8);
	buf_clear(&w.told);
	close(fd);
}

static void stops(struct net_loop *world, uint64_t session, const char *line)
{
	answers(world, session, line);
	net_read(world->net, session, false);
}

LOOP_TEST(room_alone_does_not_switch_reading_on, 2)
{
	int fd = client(_i);
	unsigned long lines;

	asks(fd);
	w.on_line = stops;
	lines = w.lines;
	net_loop_drains(&w, fd, answered);
	net_loop_until(&w, w.lines > lines);
	net_loop_drains(&w, fd, ANSWER);
	net_loop_settle(&w);
	ck_assert_uint_eq(w.lines, lines + 1);
	close(fd);
	w.quiet = true;
	net_loop_until(&w, net_sessions(w.net) == 0 || _i);
	buf_clear(&w.told);
}

LOOP_TEST(a_bound_that_is_raised_lets_requests_go_on_when_there_is_room, 2)
{
	int fd = client(_i);

	asks(fd);
	net_set_limits(w.net, 64 * MARK, 100, 100, w.conf.peer_max);
	w.quiet = true;
	net_loop_drains(&w, fd, ASKED * ANSWER);
	ck_assert_uint_eq(w.lines, ASKED);
	close(fd);
}

/* --- sent ---------------------------------------------------------------------------------------------------------- */

LOOP_TEST(a_session_with_nothing_unsent_is_told_as_sent_by_the_loop_and_once, 2)
{
	int fd = client(_i);

	w.quiet = false;
	net_await_sent(w.net, w.session);
	ck_assert_uint_eq(buf_length(&w.told), 0);
	net_loop_told(&w, "sent 0.1\n");
	net_loop_at_rest(&w);
	net_send(w.net, w.session, much, 8);
	net_await_sent(w.net, w.session);
	net_loop_told(&w, "sent 0.1\n");
	close(fd);
}

LOOP_TEST(sent_waits_for_the_reader_and_comes_before_further_lines, 2)
{
	int fd = client(_i);
	size_t had;

	asks(fd);
	net_await_sent(w.net, w.session);
	net_loop_at_rest(&w);
	net_loop_drains(&w, fd, had = answered);
	net_loop_until(&w, buf_length(&w.told) > 0);
	ck_assert_mem_eq(buf_begin(&w.told), "sent 0.1\nline 0.1 ?\n", 20);
	buf_consume(&w.told, strlen("sent 0.1\n"));
	net_loop_drains(&w, fd, (ASKED * ANSWER) - had);
	buf_append(&w.told, "", 1);
	ck_assert_ptr_null(strstr(buf_begin(&w.told), "sent")); /* once */
	buf_clear(&w.told);
	w.quiet = true;
	close(fd);
}

LOOP_TEST(sent_is_told_when_input_has_ended_as_well, 2)
{
	int fd = client(_i);

	w.quiet = false;
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "eof 0.1\n");
	net_await_sent(w.net, w.session);
	net_loop_told(&w, "sent 0.1\n");
	close(fd);
}

static void hangs_up(struct net_loop *world, uint64_t session)
{
	net_hangup(world->net, session);
}

LOOP_TEST(a_session_may_be_hung_up_when_it_is_told_as_sent, 2)
{
	int fd = client(_i);

	asks(fd);
	w.on_end = hangs_up;
	net_await_sent(w.net, w.session);
	net_loop_drains(&w, fd, answered);
	net_loop_told(&w, "sent 0.1\n");
	ck_assert_uint_eq(net_sessions(w.net), 0);
	close(fd);
}

static void floods_and_hangs_up(struct net_loop *world, uint64_t session)
{
	for (size_t i = 0; i < 4096; i++)
		answers(world, session, "");
	net_hangup(world->net, session);
}

LOOP_TEST(a_session_may_overflow_and_be_hung_up_when_it_is_told_as_sent, 2)
{
	int fd = client(_i);

	w.quiet = false;
	w.on_end = floods_and_hangs_up;
	net_await_sent(w.net, w.session);
	net_loop_says(&w, fd, "?\n");
	net_loop_until(&w, net_sessions(w.net) == 0);
	net_loop_settle(&w);
	buf_clear(&w.told);
	close(fd);
}

LOOP_TEST(a_session_that_was_hung_up_is_not_told_as_sent, 2)
{
	int fd = client(_i);

	w.quiet = false;
	net_await_sent(w.net, w.session);
	net_hangup(w.net, w.session);
	net_await_sent(w.net, w.session);
	net_loop_at_rest(&w);
	close(fd);
}
