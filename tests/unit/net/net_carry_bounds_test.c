/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/carry.c: numbers of sessions, bounds and connections that are closing, in the next net. */
#include "tests/fixture/much_output.h"

#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST (UINT64_C(1) << 32)
#define USERS_SHARE 59u /* of 62 sessions: shares.h */

static void ends(int fd, const char *told)
{
	close(fd);
	net_loop_told(&w, told);
}

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = much_is_ready, .teardown = much_is_over, .seconds = 60)

TEST(a_session_keeps_its_number)
{
	int a = net_loop_client(&w, 0), b = net_loop_unix(&w), c;

	net_loop_told(&w, "open 1.1\n");
	c = net_loop_unix(&w);
	net_loop_told(&w, "open 2.1\n");
	ends(a, "gone 0.1 hangup\n");
	a = net_loop_unix(&w);
	net_loop_told(&w, "open 0.2\n");
	ends(a, "gone 0.2 hangup\n");
	ends(c, "gone 2.1 hangup\n");
	net_loop_carries(&w);
	ck_assert_uint_eq(net_sessions(w.net), 1);
	net_send(w.net, FIRST | 1, "YES\n", 4);
	net_loop_hears(&w, b, "YES\n");
	a = net_loop_unix(&w);
	net_loop_told(&w, "open 0.1\n");
	c = net_loop_unix(&w);
	net_loop_told(&w, "open 2.1\n");
	net_loop_says(&w, b, "a\n");
	net_loop_told(&w, "line 1.1 a\n");
	close(a);
	close(b);
	close(c);
}

TEST(sessions_beyond_lower_bounds_stay)
{
	int fd[8], more;

	for (unsigned i = 0; i < 8; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
	}
	buf_clear(&w.told);
	w.conf.sessions_max = w.conf.connections_max = 3;
	w.conf.output_max = 4;
	net_loop_carries(&w);
	net_loop_at_rest(&w);
	ck_assert_uint_eq(net_sessions(w.net), 8);
	w.on_line = net_loop_says_ok;
	for (unsigned i = 0; i < 8; i++) {
		net_loop_says(&w, fd[i], "a\n");
		net_loop_hears(&w, fd[i], "OK\n");
	}
	more = net_loop_unix(&w);
	net_loop_hears(&w, more, "ERR LIMIT clients=3 too many connections\n");
	buf_clear(&w.told);
	for (unsigned i = 0; i < 8; i++)
		close(fd[i]);
	close(more);
}

LOOP_TEST(an_unfinished_line_has_room_where_lines_may_be_shorter, 2)
{
	static char line[300 * 1024];
	int fd = net_loop_client(&w, _i);

	memset(line, 'x', sizeof(line) - 1);
	w.conf.line_max = 1024 * 1024;
	net_loop_carries(&w);
	for (const char *at = line; *at; net_loop_pass(&w)) {
		ssize_t n = send(fd, at, strlen(at), MSG_DONTWAIT);

		at += n > 0 ? n : 0;
	}
	net_loop_settle(&w);
	w.conf.line_max = 8;
	net_loop_carries(&w);
	net_loop_says(&w, fd, "\nb\n");
	net_loop_told(&w, "toolong 0.1\nline 0.1 b\n");
	close(fd);
}

static int connects_as(uid_t uid)
{
	int fd;

	ck_assert_int_eq(seteuid(uid), 0);
	fd = net_loop_unix(&w);
	ck_assert_int_eq(seteuid(0), 0);
	return fd;
}

/* How many sessions this user can have; carried when there are so many. They are over afterwards. */
static unsigned sessions_had(unsigned carried_at)
{
	const unsigned long opened = w.opened;
	uint64_t refused = net_loop_counts(&w).refused;
	int fd[64];
	unsigned n = 0, had;

	do {
		if (n == carried_at) {
			net_loop_carries(&w);
			refused = net_loop_counts(&w).refused;
		}
		fd[n++] = connects_as(1000);
		net_loop_until(&w, w.opened == opened + n || net_loop_counts(&w).refused > refused);
	} while (w.opened == opened + n);
	had = n - 1;
	while (n)
		close(fd[--n]);
	net_loop_until(&w, net_sessions(w.net) == 1 && net_closing(w.net) == 0);
	return had;
}

static void two_users_come(unsigned peer_max)
{
	net_loop_again(&w, 62);
	w.conf.peer_max = peer_max;
	net_set_limits(w.net, w.conf.output_max, w.conf.sessions_max, w.conf.connections_max, peer_max);
	chmod(w.folder, 0755);
	w.quiet = true;
}

LOOP_TEST(users_have_the_sessions_that_they_would_have, 2)
{
	int other;

	if (geteuid())
		return;
	two_users_come(_i ? 7 : 0);
	other = connects_as(1001);
	net_loop_until(&w, w.opened == 1);
	ck_assert_uint_eq(sessions_had(1000), _i ? 7 : USERS_SHARE);
	ck_assert_uint_eq(sessions_had(5), _i ? 7 : USERS_SHARE);
	ck_assert_uint_eq(sessions_had(_i ? 7 : 40), _i ? 7 : USERS_SHARE);
	ck_assert_uint_eq(sessions_had(1000), _i ? 7 : USERS_SHARE);
	close(other);
}

/* --- closing -------------------------------------------------------------------------------------------------------- */

LOOP_TEST(the_last_lines_of_a_connection_that_is_closing_arrive, 2)
{
	int fd = net_loop_client(&w, _i);

	net_loop_says(&w, fd, "a\n");
	net_loop_told(&w, "line 0.1 a\n");
	net_loop_says(&w, fd, "unread\n");
	net_send(w.net, w.session, much, MUCH);
	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	net_flush(w.net);
	net_loop_carries(&w);
	ck_assert_uint_eq(net_closing(w.net), 1);
	net_loop_drains(&w, fd, MUCH);
	net_loop_hears(&w, fd, "BYE\n");
	net_loop_eof(&w, fd);
	close(fd);
	net_loop_until(&w, net_closing(w.net) == 0);
	net_loop_at_rest(&w);
}

LOOP_TEST(a_connection_that_begins_to_close_is_shut, 2)
{
	int fd = net_loop_client(&w, _i);

	net_hangup(w.net, w.session);
	net_loop_carries(&w);
	net_loop_eof(&w, fd);
	ck_assert_uint_eq(net_closing(w.net), 1);
	close(fd);
}

LOOP_TEST(a_connection_that_is_shut_waits_for_its_client, 2)
{
	int fd = net_loop_client(&w, _i);

	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	net_flush(w.net);
	net_loop_carries(&w);
	net_loop_says(&w, fd, "unread\n");
	net_loop_settle(&w);
	net_loop_hears(&w, fd, "BYE\n");
	net_loop_eof(&w, fd);
	ck_assert_uint_eq(net_closing(w.net), 1);
	if (_i) {
		close(fd);
		net_loop_settle(&w);
		ck_assert_uint_eq(net_closing(w.net), 0);
	}
	net_loop_until(&w, net_closing(w.net) == 0); /* after 1 s at the latest */
	if (!_i)
		close(fd);
}

/* closing.h: so many that were refused are closing at a time. One more gets its line, and is closed at once. */
TEST(refused_connections_that_are_closing_are_counted_on)
{
	int fd[66], n = 0;

	net_loop_again(&w, 1);
	fd[n++] = net_loop_client(&w, 0);
	while (n < 65)
		fd[n++] = net_loop_unix(&w);
	net_loop_until(&w, net_closing(w.net) == 64);
	w.conf.sessions_max = 1;
	net_loop_carries(&w);
	fd[n++] = net_loop_unix(&w);
	net_loop_hears(&w, fd[65], "ERR LIMIT clients=1 too many connections\n");
	net_loop_eof(&w, fd[65]);
	ck_assert_uint_le(net_closing(w.net), 64);
	while (n)
		close(fd[--n]);
}

/* --- the same net -------------------------------------------------------------------------------------------------- */

LOOP_TEST(a_net_takes_its_own_parcel_back, 2)
{
	int a = net_loop_client(&w, _i), b = net_loop_unix(&w);
	struct fdlist fds = {0};
	struct net_parcel *p;

	net_loop_told(&w, "open 1.1\n");
	net_loop_says(&w, a, "ha");
	net_loop_at_rest(&w);
	net_pause(w.net, true);
	net_loop_says(&w, a, "lf\n");
	p = net_pack(w.net, &fds);
	net_unpack(w.net, p, &fds);
	fdlist_release(&fds);
	ck_assert_int_eq(net_listen_again(w.net, NULL, NULL), 0);
	net_loop_at_rest(&w); /* it is still in its pause */
	net_pause(w.net, false);
	net_loop_told(&w, "line 0.1 half\n");
	close(b);
	net_loop_told(&w, "gone 1.1 hangup\n");
	b = net_loop_unix(&w);
	net_loop_told(&w, "open 1.2\n");
	close(a);
	close(b);
}
