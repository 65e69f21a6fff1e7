/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net as a whole: session numbers, the identity of peers, and what a silent session costs. */
#include "daemon/net/slots.h"
#include "tests/fixture/loopback.h"
#include "daemon/net/sockets.h"
#include "tests/fixture/net_loop.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
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

/* --- numbers ------------------------------------------------------------------------------------------------------- */

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(a_session_takes_the_lowest_free_slot_and_a_new_generation)
{
	int a = net_loop_unix(&w), b, c;

	net_loop_told(&w, "open 0.1\n");
	b = net_loop_unix(&w);
	net_loop_told(&w, "open 1.1\n");
	c = net_loop_unix(&w);
	net_loop_told(&w, "open 2.1\n");
	close(b);
	net_loop_told(&w, "gone 1.1 hangup\n");
	close(a);
	net_loop_told(&w, "gone 0.1 hangup\n");
	a = net_loop_tcp(&w);
	net_loop_told(&w, "open 0.2\n");
	b = net_loop_tcp(&w);
	net_loop_told(&w, "open 1.2\n");
	ck_assert_uint_eq(net_sessions(w.net), 3);
	close(a);
	close(b);
	close(c);
}

TEST(a_number_that_is_spent_or_never_was_reaches_nobody)
{
	static const uint64_t wrong[] = {0, 1, UINT64_C(2) << 32, UINT64_C(1) << 32 | 63, UINT64_C(1) << 32 | 64, UINT64_MAX};
	int fd = net_loop_unix(&w);
	size_t i;

	net_loop_told(&w, "open 0.1\n");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		net_send(w.net, wrong[i], "x", 1);
		net_read(w.net, wrong[i], false);
		net_hangup(w.net, wrong[i]);
	}
	net_loop_says(&w, fd, "PING\n");
	net_loop_told(&w, "line 0.1 PING\n");
	net_send(w.net, w.session, "OK\n", 3);
	net_loop_hears(&w, fd, "OK\n");
	close(fd);
}

TEST(reserved_slots_are_not_taken_but_may_be_put)
{
	struct slots s;
	uint64_t number[200];

	slots_init(&s, 64, 960);
	ck_assert(slots_put(&s, UINT64_C(5) << 32 | 100, (struct conn *)&s));
	for (size_t i = 0; i < 200; i++) {
		number[i] = slots_take(&s, (struct conn *)&number[i]);
		ck_assert_uint_eq((uint32_t)number[i], 1024 + i);
	}
	ck_assert(slots_has(&s, 100) && slots_has(&s, 1024) && !slots_has(&s, 101) && !slots_has(&s, 3) && !slots_has(&s, 5000));
	slots_give(&s, UINT64_C(5) << 32 | 100);
	slots_give(&s, number[7]);
	ck_assert(!slots_has(&s, 100));
	ck_assert_uint_eq((uint32_t)slots_take(&s, (struct conn *)&s), 1024 + 7);
	slots_release(&s);
}

TEST(slots_stay_dense_over_many_that_come_and_go)
{
	static uint64_t number[1000];
	struct slots s;
	int i, turn;

	slots_init(&s, 3, 0);
	for (i = 0; i < 1000; i++) {
		number[i] = slots_take(&s, (struct conn *)&number[i]);
		ck_assert_uint_eq(number[i], UINT64_C(1) << 32 | (3U + (unsigned)i));
	}
	for (turn = 0; turn < 20000; turn++) {
		uint64_t old;

		i = turn * 7919 % 1000;
		old = number[i];
		slots_give(&s, old);
		ck_assert_ptr_null(slots_find(&s, old));
		number[i] = slots_take(&s, (struct conn *)&number[i]);
		ck_assert_uint_eq((uint32_t)number[i], (uint32_t)old);
		ck_assert_uint_gt(number[i], old);
		ck_assert_ptr_eq(slots_find(&s, number[i]), &number[i]);
	}
	ck_assert_uint_eq(s.live, 1000);
	for (i = 0; i < 1000; i++)
		slots_give(&s, number[i]);
	ck_assert_ptr_null(slots_any(&s));
	slots_release(&s);
}

/* --- who it is ----------------------------------------------------------------------------------------------------- */

TEST(a_unix_peer_is_known_by_its_credentials)
{
	int fd = net_loop_unix(&w);

	net_loop_told(&w, "open 0.1\n");
	ck_assert(w.peer.is_unix && w.peer.is_local);
	ck_assert_int_eq(w.peer.pid, getpid());
	ck_assert_int_eq(w.peer.uid, getuid());
	ck_assert_str_eq(w.peer.address, "unix");
	close(fd);
}

TEST(a_tcp_peer_is_known_by_its_address)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);
	char expected[64];
	int fd = net_loop_tcp(&w);

	net_loop_told(&w, "open 0.1\n");
	getsockname(fd, (struct sockaddr *)&a, &n);
	snprintf(expected, sizeof(expected), "127.0.0.1:%u", ntohs(a.sin_port));
	ck_assert(!w.peer.is_unix && w.peer.is_local);
	ck_assert_int_eq(w.peer.pid, -1);
	ck_assert_int_eq(w.peer.uid, -1);
	ck_assert_str_eq(w.peer.address, expected);
	close(fd);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t n = sizeof(value);

	getsockopt(fd, level, name, &value, &n);
	return value;
}

/* The other end of a connection whose two ends are ours. */
static int accepted_end(int fd)
{
	struct sockaddr_in here, there;
	int other;

	getsockname(fd, (struct sockaddr *)&here, &(socklen_t){sizeof(here)});
	for (other = 0; other < 1024; other++)
		if (!getpeername(other, (struct sockaddr *)&there, &(socklen_t){sizeof(there)}) && there.sin_family == AF_INET &&
		    there.sin_port == here.sin_port)
			return other;
	return -1;
}

TEST(a_tcp_connection_has_no_delay_and_keepalive)
{
	int fd = net_loop_tcp(&w), end;

	net_loop_told(&w, "open 0.1\n");
	end = accepted_end(fd);
	ck_assert_int_ge(end, 0);
	ck_assert_int_eq(option(end, IPPROTO_TCP, TCP_NODELAY), 1);
	ck_assert_int_eq(option(end, SOL_SOCKET, SO_KEEPALIVE), 1);
	ck_assert_int_eq(option(end, IPPROTO_TCP, TCP_KEEPIDLE), 60);
	ck_assert_int_eq(option(end, IPPROTO_TCP, TCP_KEEPINTVL), 20);
	ck_assert_int_eq(option(end, IPPROTO_TCP, TCP_KEEPCNT), 3);
	ck_assert_int_eq(option(end, IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
	ck_assert_int_eq(fcntl(end, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(fcntl(end, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	close(fd);
}

/* --- the rest ------------------------------------------------------------------------------------------------------ */

TEST(after_stop_listening_nobody_comes_in_and_sessions_stay)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(w.port)};
	int fd = net_loop_unix(&w), other = socket(AF_INET, SOCK_STREAM, 0);

	net_loop_told(&w, "open 0.1\n");
	net_stop_listening(w.net);
	ck_assert_int_eq(access(w.path, F_OK), -1);
	ck_assert_int_eq(connect(other, (struct sockaddr *)&a, sizeof(a)), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	net_loop_says(&w, fd, "PING\n");
	net_loop_told(&w, "line 0.1 PING\n");
	close(fd);
	close(other);
}

LOOP_TEST(a_port_is_listened_on_by_number_or_name, 2)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert(!bind(fd, (struct sockaddr *)&a, n) && !getsockname(fd, (struct sockaddr *)&a, &n));
	close(fd);
	w.port = ntohs(a.sin_port);
	ck_assert_int_eq(net_listen_tcp(w.net, _i ? loopback_name() : "127.0.0.1", w.port, false), 0);
	ck_assert_int_eq(net_listen_tcp(w.net, "127.0.0.1", w.port, false), -EADDRINUSE);
	ck_assert_int_eq(net_listen_fd(w.net, 0, false), -EINVAL);
	fd = net_loop_tcp(&w);
	net_loop_told(&w, "open 0.1\n");
	close(fd);
	net_free(NULL);
}

TEST(limits_that_change_hold_from_then_on)
{
	int a = net_loop_unix(&w), b, c;

	net_loop_told(&w, "open 0.1\n");
	net_set_limits(w.net, 4, 1, 100, w.conf.peer_max);
	b = net_loop_unix(&w);
	net_loop_hears(&w, b, "ERR LIMIT clients=1 too many connections\n");
	net_send(w.net, w.session, "12345", 5);
	net_loop_told(&w, "gone 0.1 overflow\n");
	net_set_limits(w.net, 5, 1, 100, w.conf.peer_max);
	c = net_loop_unix(&w);
	net_loop_told(&w, "open 0.2\n");
	net_send(w.net, w.session, "12345", 5);
	net_loop_hears(&w, c, "12345");
	close(a);
	close(b);
	close(c);
}

TEST(bytes_are_counted)
{
	int fd = net_loop_unix(&w);

	net_loop_told(&w, "open 0.1\n");
	net_loop_says(&w, fd, "PING\r\n");
	net_loop_told(&w, "line 0.1 PING\n");
	net_send(w.net, w.session, "OK\n", 3);
	net_loop_hears(&w, fd, "OK\n");
	ck_assert_uint_eq(net_loop_counts(&w).bytes_in, 6);
	ck_assert_uint_eq(net_loop_counts(&w).bytes_out, 3);
	close(fd);
}

static void echo(struct net_loop *world, uint64_t session, const char *line)
{
	net_send(world->net, session, line, strlen(line));
}

/* Each session has spoken and was answered, so its buffers were used once. */
TEST(a_silent_session_costs_little)
{
	enum { N = 5000 };
	static char much[3 << 20];
	static int fd[N];
	struct rlimit many = {0};
	size_t before, cost;
	int i;

	getrlimit(RLIMIT_NOFILE, &many);
	many.rlim_cur = many.rlim_max;
	setrlimit(RLIMIT_NOFILE, &many);
	if (many.rlim_cur < 2 * N + 100) {
		printf("net: skipped, %llu descriptors are too few\n", (unsigned long long)many.rlim_cur);
		return;
	}
	net_loop_again(&w, N);
	w.quiet = true;
	w.on_line = echo;
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (i = 0; i < N; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_says(&w, fd[i], "PING\n");
		if (i % 64 == 0)
			net_loop_settle(&w);
	}
	net_loop_until(&w, w.lines == N);
	/* One of them a whole load. */
	net_send(w.net, w.session, much, sizeof(much));
	for (i = 0; i < (int)sizeof(much); i += (int)recv(fd[N - 1], much, sizeof(much), 0))
		net_loop_settle(&w);
	cost = (mallinfo2().uordblks + mallinfo2().hblkhd - before) / N;
	if (before) /* an instrumented build does not count */
		printf("net: %d silent sessions, %zu bytes each\n", N, cost);
	ck_assert_uint_lt(cost, 512);
	for (i = 0; i < N; i++)
		close(fd[i]);
	net_loop_until(&w, net_sessions(w.net) == 0);
}

/* Their lines have no end, so no callback reports them: what is read is the work. */
TEST(a_pass_reads_a_bounded_number_of_sockets_and_none_waits_for_ever)
{
	enum { N = 300 };
	struct net_counts counts;
	int fd[N];
	unsigned passes = 0;

	net_loop_again(&w, N);
	w.quiet = true;
	for (unsigned i = 0; i < N; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
	}
	net_loop_settle(&w);
	for (unsigned i = 0; i < N; i++)
		net_loop_says(&w, fd[i], "x");
	do {
		uint64_t before = net_loop_counts(&w).bytes_in;

		net_loop_pass(&w);
		counts = net_loop_counts(&w);
		ck_assert_uint_le(counts.bytes_in - before, 2 * SOCKETS_AT_ONCE); /* of those that wait for their turns as many */
		passes++;
	} while (counts.bytes_in < N);
	ck_assert_uint_ge(passes, N / (2 * SOCKETS_AT_ONCE));
	net_loop_settle(&w);
	for (unsigned i = 0; i < N; i++)
		close(fd[i]);
	net_loop_until(&w, net_sessions(w.net) == 0);
}

static void ends_the_others(struct net_loop *world, uint64_t session, const char *line)
{
	(void)line;
	for (uint32_t i = 0; i < 3; i++)
		if (i != (uint32_t)session)
			net_hangup(world->net, UINT64_C(1) << 32 | i);
	net_flush(world->net);
}

TEST(of_sockets_that_are_ready_together_the_first_may_end_the_others)
{
	int fd[3];

	for (unsigned i = 0; i < 3; i++) {
		fd[i] = net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
	}
	buf_clear(&w.told);
	w.on_line = ends_the_others;
	for (unsigned i = 0; i < 3; i++) {
		net_loop_says(&w, fd[i], "a\n");
		shutdown(fd[i], SHUT_RDWR); /* so one that is closed is freed at once */
	}
	net_loop_settle(&w);
	ck_assert_uint_eq(w.lines, 1);
	buf_clear(&w.told);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
	net_loop_until(&w, net_sessions(w.net) == 0);
	buf_clear(&w.told);
}

static struct {
	int asks, leaves; /* as soon as the first of the others has ended, one client sends a line and another one goes */
	unsigned gone, before_line;
} many;

/* As the service does whose step takes long. */
static void ends_for_long(struct net_loop *world)
{
	if (many.gone++ == 0) {
		close(many.leaves);
		net_loop_says(world, many.asks, "PING\n");
	}
	event_base_loopbreak(world->base);
}

static void hangs_up(struct net_loop *world, uint64_t session)
{
	net_hangup(world->net, session);
	ends_for_long(world);
}

static void counts_ends(struct net_loop *world, uint64_t session, const char *line)
{
	(void)world, (void)session, (void)line;
	many.before_line = many.gone;
}

LOOP_TEST(who_asks_while_many_connections_end_is_not_behind_all_of_them, 3)
{
	enum { N = 30, UNIX, RESET };
	static const int how[3] = {UNIX, RESET, 0};
	int fd[N];

	many = (typeof(many)){.asks = net_loop_unix(&w), .leaves = net_loop_unix(&w)};
	w.quiet = true;
	w.on_gone = ends_for_long;
	w.on_end = hangs_up;
	w.on_line = counts_ends;
	for (unsigned i = 0; i < N; i++) {
		fd[i] = how[_i] == UNIX ? net_loop_unix(&w) : net_loop_tcp(&w);
		net_loop_until(&w, w.opened == i + 3);
	}
	for (unsigned i = 0; i < N; i++)
		if (how[_i] == RESET)
			net_loop_resets(fd[i]);
		else
			close(fd[i]);
	net_loop_until(&w, net_sessions(w.net) == 1 && w.lines == 1);
	ck_assert_uint_eq(many.gone, N + 1);
	ck_assert_uint_le(many.before_line, 3);
	close(many.asks);
	net_loop_until(&w, net_sessions(w.net) == 0);
}

TEST(a_base_without_epoll_serves)
{
	const struct net_conf conf = NET_LOOP_CONF;
	const struct net_sink sink = {0};
	struct event_config *config = event_config_new();
	struct event_base *base;
	struct net *net;

	event_config_avoid_method(config, "epoll");
	base = event_base_new_with_config(config);
	net = net_new(base, &conf, &sink);
	ck_assert_ptr_nonnull(net);
	net_free(net);
	event_config_free(config);
	event_base_free(base);
}
