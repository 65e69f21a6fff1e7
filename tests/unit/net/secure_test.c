/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/secure.c, handshake.c: connections inside TLS. What an openssl client sees of the daemon: tests/func/test_tls.py. */
#include "daemon/base/clock.h"
#include "daemon/net/acceptor.h"
#include "daemon/net/handshakes.h"
#include "tests/fixture/tls_client.h"

#include <poll.h>
#include <sys/resource.h>

/* How many records of data have arrived and were not read. */
static unsigned records(struct client c, size_t least)
{
	unsigned char bytes[8192];
	ssize_t n = 0;
	unsigned count = 0;

	net_loop_until(&w, (n = recv(c.fd, bytes, sizeof(bytes), MSG_PEEK)) >= (ssize_t)least);
	for (ssize_t at = 0; at + 5 <= n; at += 5 + (bytes[at + 3] << 8 | bytes[at + 4]))
		count += bytes[at] == 23;
	return count;
}

/* --- tests --------------------------------------------------------------------------------------------------------- */

FIXTURE(.setup = setup, .teardown = teardown)

TEST(answers_of_one_pass_leave_in_one_record)
{
	struct client c = client_opens(0);

	w.on_line = net_loop_says_ok;
	client_says(c, "A\nB\nC\nD\nE\n");
	net_loop_told(&w, "line 0.1 A\nline 0.1 B\nline 0.1 C\nline 0.1 D\nline 0.1 E\n");
	net_loop_settle(&w);
	ck_assert_uint_eq(records(c, 5 * 3 + 22), 1);
	client_drops(c);
}

TEST(a_line_may_come_in_many_records)
{
	struct client c = client_opens(0);

	for (const char *at = "PING 1\r\nPING 2\n"; *at; at++)
		client_says(c, (char[]){*at, '\0'});
	net_loop_told(&w, "line 0.1 PING 1\nline 0.1 PING 2\n");
	client_drops(c);
}

TEST(long_output_goes_out_as_the_peer_reads)
{
	static char bytes[1024 * 1024];
	struct client c = client_opens(SMALL);
	char tail[4];

	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes + sizeof(bytes) - 4, "end\n", 4);
	net_send(w.net, w.session, bytes, sizeof(bytes));
	net_loop_pass(&w);
	client_reads(c, sizeof(bytes), tail, sizeof(tail));
	ck_assert_mem_eq(tail, "end\n", 4);
	client_drops(c);
}

TEST(a_peer_that_does_not_read_is_disconnected)
{
	static char bytes[1024 * 1024];
	struct client c = client_opens(SMALL);

	for (unsigned i = 0; i < 32; i++) {
		net_send(w.net, w.session, bytes, sizeof(bytes));
		net_loop_pass(&w);
	}
	net_loop_told(&w, "gone 0.1 overflow\n");
	client_drops(c);
}

LOOP_TEST(close_notify_is_the_end_and_its_lack_a_reset, 2)
{
	struct client c = client_opens(0);

	client_says(c, "LAST\nrest");
	if (_i)
		SSL_shutdown(c.tls);
	client_drops(c);
	net_loop_told(&w, _i ? "line 0.1 LAST\neof 0.1\n" : "line 0.1 LAST\ngone 0.1 reset\n");
}

TEST(after_its_close_notify_a_peer_still_gets_answers)
{
	struct client c = client_opens(0);
	char tail[3];

	client_says(c, "LAST\n");
	ck_assert_int_eq(SSL_shutdown(c.tls), 0);
	net_loop_told(&w, "line 0.1 LAST\neof 0.1\n");
	net_send(w.net, w.session, "OK\n", 3);
	net_hangup(w.net, w.session);
	client_reads(c, 3, tail, 3);
	ck_assert_mem_eq(tail, "OK\n", 3);
	net_loop_until(&w, SSL_shutdown(c.tls) == 1); /* the close_notify of the daemon */
	client_drops(c);
}

TEST(lines_wait_while_reading_is_off)
{
	struct client c = client_opens(0);

	net_read(w.net, w.session, false);
	client_says(c, "A\n");
	client_says(c, "B\n");
	net_loop_settle(&w);
	net_loop_at_rest(&w);
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 A\nline 0.1 B\n");
	client_drops(c);
}

/* The answer to a demand for new keys cannot go out while the peer reads nothing. */
TEST(demands_for_new_keys_of_a_peer_that_reads_nothing_do_not_spin)
{
	static char bytes[32 * 1024];
	struct client c = client_opens(SMALL);
	struct net_counts before, after;
	size_t sent = 0;

	do {
		net_counts(w.net, &before);
		net_send(w.net, w.session, bytes, sizeof(bytes));
		net_loop_pass(&w);
		net_counts(w.net, &after);
		sent += sizeof(bytes);
	} while (after.bytes_out - before.bytes_out == sizeof(bytes));
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_int_eq(SSL_key_update(c.tls, SSL_KEY_UPDATE_REQUESTED), 1);
		client_says(c, "PING\n");
		net_loop_pass(&w);
	}
	net_loop_settle(&w);
	buf_clear(&w.told);
	net_loop_at_rest(&w);
	client_reads(c, sent, NULL, 0);
	client_says(c, "LAST\n");
	net_loop_until(&w, buf_length(&w.told) >= 14 && !memcmp(buf_begin(&w.told) + buf_length(&w.told) - 14, "line 0.1 LAST\n", 14));
	client_drops(c);
}

TEST(one_session_too_many_is_refused_inside_tls)
{
	struct client one, two;
	char line[16];

	net_loop_release(&w);
	begin((struct net_conf){.line_max = 64, .output_max = 65536, .sessions_max = 1, .connections_max = 100, .keepalive_us = INT64_C(60000000)});
	one = client_opens(0);
	two = client_dials(0);
	net_loop_until(&w, SSL_do_handshake(two.tls) == 1);
	client_reads(two, 14, line, 14);
	ck_assert_mem_eq(line, "ERR LIMIT clie", 14);
	client_drops(two);
	client_drops(one);
	net_loop_told(&w, "gone 0.1 reset\n");
}

TEST(handshakes_end_when_listening_does)
{
	struct client c = client_dials(0);
	char byte;

	ck_assert_int_eq(SSL_do_handshake(c.tls), -1);
	net_loop_pass(&w);
	net_stop_listening(w.net);
	net_loop_until(&w, SSL_read(c.tls, &byte, 1) <= 0 && SSL_get_error(c.tls, 0) != SSL_ERROR_WANT_READ);
	client_drops(c);
	ck_assert_uint_eq(net_sessions(w.net), 0);
}

/* --- handshakes that make room for others --------------------------------------------------------------------------- */

static int handshake_begins(const char *address)
{
	struct peer peer = {0};
	int fd[2];

	snprintf(peer.address, sizeof(peer.address), "%s", address);
	ck_assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	handshake_begin(&w.net->hub, fd[0], &peer);
	return fd[1];
}

static bool is_given_up(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* A peer that opens connections on and on ends its own handshakes, and not that of another which is further away. */
TEST(handshakes_of_the_peer_that_has_most_make_room)
{
	static const char *const address[] = {"10.0.0.1:1000", "10.0.0.2:1001", "10.0.0.2:1002", "[2001:db8::1]:1", "10.0.0.2:1003", "[2001:db8::2]:1"};
	static const unsigned order[] = {1, 2, 3, 0, 4, 5}; /* of as many the oldest first; a network of IPv6 is one peer */
	int fd[6];

	for (unsigned i = 0; i < 6; i++)
		fd[i] = handshake_begins(address[i]);
	for (unsigned i = 0; i < 6; i++) {
		for (unsigned k = i; k < 6; k++)
			ck_assert_msg(!is_given_up(fd[order[k]]), "%s after %u", address[order[k]], i);
		ck_assert(handshake_evict(&w.net->hub));
		ck_assert_msg(is_given_up(fd[order[i]]), "%s as number %u", address[order[i]], i);
	}
	ck_assert(!handshake_evict(&w.net->hub));
	for (unsigned i = 0; i < 6; i++)
		close(fd[i]);
}

/* Whoever has had one under way all the time, one after the other, is no worse off than others. */
TEST(of_peers_that_have_as_many_handshakes_the_oldest_makes_room)
{
	int fd[3] = {handshake_begins("10.0.0.1:1"), handshake_begins("10.0.0.2:1")};

	net_loop_pass(&w); /* the clock goes on */
	usleep(1000);
	fd[2] = handshake_begins("10.0.0.1:2");
	ck_assert(handshake_evict(&w.net->hub));
	ck_assert(is_given_up(fd[0]));
	ck_assert(handshake_evict(&w.net->hub));
	ck_assert(is_given_up(fd[1]));
	ck_assert(!is_given_up(fd[2]));
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
}

/* --- handshakes that take long -------------------------------------------------------------------------------------- */

static int64_t slow_us;
static unsigned begun_n;
static struct instant begun[4];

static void takes_long(const SSL *t, int where, int r)
{
	(void)t, (void)r;
	if (!(where & SSL_CB_HANDSHAKE_START))
		return;
	if (begun_n < 4)
		begun[begun_n++] = clock_boottime();
	usleep((useconds_t)slow_us);
}

static void handshakes_take(int64_t us)
{
	slow_us = us;
	begun_n = 0;
	SSL_CTX_set_info_callback(w.net->hub.handshakes.context, takes_long);
}

TEST(a_step_that_takes_long_is_followed_by_a_rest_of_three_times_as_long)
{
	int fd[3];

	handshakes_take(10 * MSEC);
	for (unsigned i = 0; i < 3; i++) {
		fd[i] = handshake_begins("10.0.0.1:1");
		ck_assert_int_eq(write(fd[i], "no TLS", 6), 6);
	}
	net_loop_until(&w, begun_n == 3);
	for (unsigned i = 1; i < 3; i++)
		ck_assert_int_ge(instant_diff(begun[i], begun[i - 1]), 30 * MSEC); /* 40, but the clock of libevent has ticks */
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
}

TEST(peers_take_turns_with_steps_that_take_long)
{
	static const char *const address[] = {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3", "10.0.0.2:1"};
	int fd[4];

	handshakes_take(5 * MSEC);
	for (unsigned i = 0; i < 4; i++) {
		fd[i] = handshake_begins(address[i]);
		ck_assert_int_eq(write(fd[i], "no TLS", 6), 6);
	}
	net_loop_until(&w, is_given_up(fd[3]));
	ck_assert_uint_le(is_given_up(fd[0]) + is_given_up(fd[1]) + is_given_up(fd[2]), 1);
	for (unsigned i = 0; i < 4; i++)
		close(fd[i]);
}

TEST(there_are_so_many_handshakes_and_no_more)
{
	struct rlimit limit;
	int fd[HANDSHAKE_MAX + 1];

	ck_assert(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	ck_assert(!setrlimit(RLIMIT_NOFILE, &limit));
	for (unsigned i = 0; i < HANDSHAKE_MAX; i++)
		fd[i] = handshake_begins("10.0.0.1:1");
	ck_assert(!is_given_up(fd[0]));
	fd[HANDSHAKE_MAX] = handshake_begins("10.0.0.2:1");
	ck_assert(is_given_up(fd[0]));
	ck_assert(!is_given_up(fd[1]));
	ck_assert_uint_eq(w.net->hub.handshakes.n, HANDSHAKE_MAX);
	for (unsigned i = 0; i <= HANDSHAKE_MAX; i++)
		close(fd[i]);
}
