/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/inherited.c, carry.c: listening sockets that go on in another net, which is told anew where to listen. */
#include "tests/fixture/net_loop.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/* The socket of this file, for as long as it is the same. */
static ino_t inode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? 0 : st.st_ino;
}

static int connects(const char *path)
{
	snprintf(w.path, sizeof(w.path), "%s", path);
	return net_loop_unix(&w);
}

static bool is_refused(uint16_t at)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(at)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), r = connect(fd, (struct sockaddr *)&a, sizeof(a));

	close(fd);
	return r < 0;
}

/* A port that was free just now. */
static uint16_t port_free(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert(!bind(fd, (struct sockaddr *)&a, n) && !getsockname(fd, (struct sockaddr *)&a, &n));
	close(fd);
	return ntohs(a.sin_port);
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

LOOP_TEST(a_client_that_came_while_there_was_no_net_is_accepted, 2)
{
	int fd;

	net_loop_packs(&w);
	fd = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	net_loop_says(&w, fd, "a\n");
	net_loop_unpacks(&w);
	net_loop_told(&w, "open 0.1\nline 0.1 a\n");
	close(fd);
}

TEST(the_file_of_a_unix_socket_stays_and_goes_at_the_end)
{
	const ino_t inode = inode_of(w.path);

	net_loop_packs(&w);
	ck_assert_uint_eq(inode_of(w.path), inode);
	net_loop_unpacks(&w);
	ck_assert_uint_eq(inode_of(w.path), inode);
	net_stop_listening(w.net);
	ck_assert_uint_eq(inode_of(w.path), 0);
}

/* As the next process may fail before it listens. */
TEST(a_socket_that_nobody_asked_for_goes_with_its_net)
{
	net_loop_packs(&w);
	net_loop_unpacks_unheard(&w);
	net_stop_listening(w.net);
	ck_assert_uint_eq(inode_of(w.path), 0);
	ck_assert(is_refused(w.port));
}

TEST(the_same_path_gets_the_same_socket)
{
	const ino_t inode = inode_of(w.path);
	int early, fd;

	net_loop_packs(&w);
	early = net_loop_unix(&w);
	net_loop_unpacks_unheard(&w);
	net_loop_at_rest(&w); /* nobody has asked for it yet */
	ck_assert_int_eq(net_listen_unix(w.net, w.path), 0);
	net_listen_no_more(w.net);
	ck_assert_uint_eq(inode_of(w.path), inode);
	net_loop_told(&w, "open 0.1\n");
	fd = net_loop_unix(&w);
	net_loop_told(&w, "open 1.1\n");
	ck_assert(is_refused(w.port)); /* nobody asked for this one */
	close(early);
	close(fd);
}

TEST(another_path_gets_another_socket_and_the_former_goes)
{
	char path[sizeof(w.path)], former[sizeof(w.path)];
	int fd;

	memcpy(former, w.path, sizeof(w.path));
	snprintf(path, sizeof(path), "%s/other", w.folder);
	net_loop_packs(&w);
	net_loop_unpacks_unheard(&w);
	ck_assert_int_eq(net_listen_unix(w.net, path), 0);
	net_listen_no_more(w.net);
	ck_assert_uint_eq(inode_of(former), 0);
	fd = connects(path);
	net_loop_told(&w, "open 0.1\n");
	close(fd);
}

TEST(a_file_that_somebody_replaced_is_left_alone)
{
	ino_t inode;
	int fd;

	net_loop_packs(&w);
	unlink(w.path);
	fd = open(w.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	inode = inode_of(w.path);
	net_loop_unpacks_unheard(&w);
	ck_assert_int_eq(net_listen_unix(w.net, w.path), -ENOTSOCK);
	net_listen_no_more(w.net);
	ck_assert_uint_eq(inode_of(w.path), inode);
	unlink(w.path);
	close(fd);
}

LOOP_TEST(the_same_address_gets_the_same_socket, 2)
{
	int early, fd;

	net_loop_packs(&w);
	early = net_loop_tcp(&w);
	net_loop_unpacks_unheard(&w);
	net_loop_at_rest(&w);
	ck_assert_int_eq(net_listen_tcp(w.net, _i ? "localhost" : "127.0.0.1", w.port, false), 0);
	net_listen_no_more(w.net);
	net_loop_told(&w, "open 0.1\n");
	fd = net_loop_tcp(&w);
	net_loop_told(&w, "open 1.1\n");
	ck_assert_int_eq(net_listen_tcp(w.net, "127.0.0.1", w.port, false), -EADDRINUSE);
	close(early);
	close(fd);
}

/* Both sockets cannot be bound at the same time. 0: from one address to all, 1: the other way. */
LOOP_TEST(another_address_with_the_same_port_gets_another_socket, 2)
{
	const char *former = _i ? "*" : "127.0.0.1", *next = _i ? "127.0.0.1" : "0.0.0.0";
	uint16_t port;
	int fd;

	net_stop_listening(w.net);
	w.port = port = port_free();
	ck_assert_int_eq(net_listen_tcp(w.net, former, port, false), 0);
	net_loop_packs(&w);
	net_loop_unpacks_unheard(&w);
	ck_assert_int_eq(net_listen_tcp(w.net, next, port, false), 0);
	net_listen_no_more(w.net);
	fd = net_loop_tcp(&w);
	net_loop_told(&w, "open 0.1\n");
	close(fd);
}

TEST(all_addresses_get_the_same_sockets)
{
	int early;

	net_stop_listening(w.net);
	w.port = port_free();
	ck_assert_int_eq(net_listen_tcp(w.net, "*", w.port, false), 0);
	net_loop_packs(&w);
	early = net_loop_tcp(&w);
	net_loop_unpacks_unheard(&w);
	ck_assert_int_eq(net_listen_tcp(w.net, "*", w.port, false), 0);
	net_listen_no_more(w.net);
	net_loop_told(&w, "open 0.1\n");
	close(early);
}

/* 0: the number is the same, as after exec(2). 1: another number of the same socket, as the service manager passes it again. */
LOOP_TEST(a_passed_socket_is_not_listened_at_twice, 2)
{
	int fd, passed, again;

	net_loop_packs(&w);
	passed = w.fds.fd[0];
	again = _i ? dup(passed) : passed;
	net_loop_unpacks_unheard(&w);
	ck_assert_int_eq(net_listen_fd(w.net, again, false), 0);
	net_listen_no_more(w.net);
	ck_assert_int_eq(fcntl(passed, F_GETFD), _i ? -1 : FD_CLOEXEC);
	fd = net_loop_tcp(&w);
	net_loop_told(&w, "open 0.1\n");
	ck_assert_int_eq(fcntl(again, F_GETFD), FD_CLOEXEC);
	close(fd);
}

static bool is_for_this_host(void *context, int fd, bool tls)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);

	ck_assert_ptr_eq(context, &w);
	ck_assert(!tls);
	return !getsockname(fd, (struct sockaddr *)&at, &n) && at.ss_family == AF_UNIX;
}

TEST(a_former_socket_that_may_not_go_on_is_closed)
{
	int fd;

	net_loop_packs(&w);
	net_loop_unpacks_unheard(&w);
	ck_assert_int_eq(net_listen_again(w.net, is_for_this_host, &w), 0);
	ck_assert(is_refused(w.port));
	fd = net_loop_unix(&w);
	net_loop_told(&w, "open 0.1\n");
	close(fd);
}

TEST(descriptors_are_closed_on_exec_again)
{
	int fd = net_loop_client(&w, 0), carried[3]; /* the client, and two listening sockets */

	net_loop_packs(&w);
	ck_assert_uint_eq(w.fds.n, 3);
	memcpy(carried, w.fds.fd, sizeof(carried));
	for (size_t i = 0; i < 3; i++)
		fcntl(carried[i], F_SETFD, 0);
	net_loop_unpacks(&w);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(fcntl(carried[i], F_GETFD), FD_CLOEXEC);
	close(fd);
}
