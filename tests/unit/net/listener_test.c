/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/listener.c, tcp_listeners.c and address.c. */
#include "daemon/net/address.h"
#include "daemon/net/tcp_listeners.h"
#include "tests/fixture/loopback.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define KEEPALIVE INT64_C(30000000)

static char folder[64], path[96];

static void setup(void)
{
	snprintf(folder, sizeof(folder), "/tmp/listener-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
}

static void teardown(void)
{
	ck_assert_msg(rmdir(folder) == 0, "something is left in %s", folder);
}

static int unix_connect(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	r = connect(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	close(fd);
	return r;
}

/* --- Unix ---------------------------------------------------------------------------------------------------------- */

static const struct listener_access open_to_all;

/* What the file allows whom, as its mode or its group is about to change. */
static mode_t before[4];
static size_t changes;

static void change_begins(const char *at)
{
	struct stat st;

	if (strcmp(at, path) != 0 || changes >= sizeof(before) / sizeof(before[0]))
		return;
	ck_assert_int_eq(lstat(path, &st), 0);
	before[changes++] = st.st_mode & 0777;
}

/* In place of those of the C library. */
int chmod(const char *at, mode_t mode)
{
	change_begins(at);
	return (int)syscall(SYS_fchmodat, AT_FDCWD, at, mode);
}

int lchown(const char *at, uid_t user, gid_t group)
{
	change_begins(at);
	return (int)syscall(SYS_fchownat, AT_FDCWD, at, user, group, AT_SYMLINK_NOFOLLOW);
}

static void allows(mode_t mode, bool has_group, mode_t meanwhile)
{
	struct stat st;

	changes = 0;
	ck_assert_int_eq(listener_allow(path, &(struct listener_access){.mode = mode, .has_group = has_group, .group = getegid()}), 0);
	ck_assert_uint_eq(changes, 3);
	ck_assert_uint_eq(before[1], meanwhile);
	ck_assert_uint_eq(before[2], meanwhile);
	ck_assert(!lstat(path, &st) && (st.st_mode & 0777) == mode);
	ck_assert_uint_eq(st.st_gid, getegid());
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_socket_is_never_open_to_more_than_it_may_be)
{
	mode_t usual = umask(0);
	struct listener l;
	struct stat st;

	changes = 0;
	ck_assert_int_eq(listener_unix(path, &(struct listener_access){.mode = 0660, .has_group = true, .group = getegid()}, &l), 0);
	umask(usual);
	ck_assert_uint_eq(changes, 3);
	ck_assert_uint_eq(before[0], 0600); /* as it was made */
	ck_assert_uint_eq(before[1], 0600);
	ck_assert_uint_eq(before[2], 0600);
	ck_assert(!lstat(path, &st) && (st.st_mode & 0777) == 0660);
	/* One that is taken over from the process before. */
	allows(0666, false, 0660);
	allows(0660, true, 0660);
	allows(0600, false, 0600);
	allows(0660, true, 0600);
	listener_release(&l);
}

TEST(anybody_may_connect_whatever_the_umask)
{
	mode_t usual = umask(0777);
	struct listener l;
	struct stat st;

	ck_assert_int_eq(listener_unix(path, &open_to_all, &l), 0);
	umask(usual);
	ck_assert(!lstat(path, &st) && S_ISSOCK(st.st_mode));
	ck_assert_int_eq(st.st_mode & 0777, 0666);
	ck_assert_int_eq(unix_connect(), 0);
	ck_assert_int_eq(fcntl(l.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	listener_release(&l);
	ck_assert_int_eq(access(path, F_OK), -1);
}

TEST(a_socket_that_somebody_listens_on_is_left_alone)
{
	struct listener l, other;

	ck_assert_int_eq(listener_unix(path, &open_to_all, &l), 0);
	ck_assert_int_eq(listener_unix(path, &open_to_all, &other), -EADDRINUSE);
	ck_assert_int_eq(unix_connect(), 0);
	listener_release(&l);
}

/* connect(2) to it fails with EAGAIN, not with ECONNREFUSED. */
TEST(a_socket_whose_backlog_is_full_is_alive)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), waiting = socket(AF_UNIX, SOCK_STREAM, 0);
	struct listener l;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	ck_assert(!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 0));
	ck_assert(!connect(waiting, (struct sockaddr *)&a, sizeof(a)));
	ck_assert_int_eq(listener_unix(path, &open_to_all, &l), -EADDRINUSE);
	close(waiting);
	close(fd);
	unlink(path);
}

TEST(a_datagram_socket_is_alive_too)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct listener l;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	ck_assert(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	ck_assert_int_eq(listener_unix(path, &open_to_all, &l), -EADDRINUSE);
	close(fd);
	unlink(path);
}

TEST(a_socket_that_nobody_listens_on_is_replaced)
{
	struct listener dead, l;

	ck_assert_int_eq(listener_unix(path, &open_to_all, &dead), 0);
	close(dead.fd); /* what a kill leaves behind */
	ck_assert_int_eq(unix_connect(), -ECONNREFUSED);
	ck_assert_int_eq(listener_unix(path, &open_to_all, &l), 0);
	ck_assert_int_eq(unix_connect(), 0);
	listener_release(&l);
	free(dead.path);
}

TEST(a_file_that_is_no_socket_is_not_removed)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	struct listener l;

	ck_assert_int_eq(listener_unix(path, &open_to_all, &l), -ENOTSOCK);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert(!symlink("nowhere", path));
	ck_assert_int_eq(listener_unix(path, &open_to_all, &l), -ENOTSOCK);
	ck_assert_int_eq(unlink(path), 0);
	close(fd);
}

TEST(the_socket_of_a_successor_is_not_removed)
{
	struct listener old, new;

	ck_assert_int_eq(listener_unix(path, &open_to_all, &old), 0);
	unlink(path);
	ck_assert_int_eq(listener_unix(path, &open_to_all, &new), 0);
	listener_release(&old);
	ck_assert_int_eq(unix_connect(), 0);
	listener_release(&new);
}

TEST(a_path_must_fit_and_be_there)
{
	char longer[200];
	struct listener l;

	memset(longer, 'x', sizeof(longer));
	longer[108] = '\0';
	ck_assert_int_eq(listener_unix(longer, &open_to_all, &l), -ENAMETOOLONG);
	ck_assert_int_eq(listener_unix("", &open_to_all, &l), -EINVAL);
	ck_assert_int_eq(listener_unix("/nowhere/at/all", &open_to_all, &l), -ENOENT);
}

/* --- TCP ----------------------------------------------------------------------------------------------------------- */

static uint16_t port_of(const struct listener *l)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	ck_assert(!getsockname(l->fd, (struct sockaddr *)&a, &n));
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port : ((struct sockaddr_in *)&a)->sin_port);
}

static int tcp_connect(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_msg(!connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect: %s", strerror(errno));
	return fd;
}

static void release(struct listener *l, int n)
{
	while (n > 0)
		listener_release(&l[--n]);
}

TEST(a_port_that_is_in_use_is_told)
{
	struct listener l[LISTENER_ADDRESSES_MAX], other[LISTENER_ADDRESSES_MAX];

	ck_assert_int_eq(tcp_listeners("127.0.0.1", 0, KEEPALIVE, NULL, l), 1);
	close(tcp_connect(port_of(l)));
	ck_assert_int_eq(tcp_listeners("127.0.0.1", port_of(l), KEEPALIVE, NULL, other), -EADDRINUSE);
	release(l, 1);
}

/* SO_REUSEADDR: connections of the previous listener may still be in TIME_WAIT. */
TEST(a_port_can_be_taken_again_at_once)
{
	struct listener l[LISTENER_ADDRESSES_MAX];
	uint16_t port;
	int ours, theirs, n = tcp_listeners("127.0.0.1", 0, KEEPALIVE, NULL, l);

	ck_assert_int_eq(n, 1);
	port = port_of(l);
	theirs = tcp_connect(port);
	do
		ours = accept(l[0].fd, NULL, NULL);
	while (ours < 0 && errno == EAGAIN);
	ck_assert_int_ge(ours, 0);
	close(ours); /* the side that closes first has the TIME_WAIT */
	close(theirs);
	release(l, n);
	n = tcp_listeners("127.0.0.1", port, KEEPALIVE, NULL, l);
	ck_assert_int_eq(n, 1);
	release(l, n);
}

TEST(a_name_stands_for_all_its_addresses_and_nothing_for_every_one)
{
	const char *const host[] = {loopback_name(), NULL, "*", "0.0.0.0"};
	struct listener l[LISTENER_ADDRESSES_MAX];
	/* One port for all of them: found free, then asked for. */
	uint16_t port;
	int n = tcp_listeners("0.0.0.0", 0, KEEPALIVE, NULL, l);
	size_t i;

	ck_assert_int_eq(n, 1);
	port = port_of(l);
	release(l, n);
	for (i = 0; i < sizeof(host) / sizeof(host[0]); i++) {
		n = tcp_listeners(host[i], port, KEEPALIVE, NULL, l);
		ck_assert_msg(n >= 1, "%s: %s", host[i] ? host[i] : "every address", strerror(-n));
		close(tcp_connect(port));
		release(l, n);
	}
}

TEST(a_host_that_is_not_here_is_told)
{
	struct listener l[LISTENER_ADDRESSES_MAX];
	char impossible[80]; /* a label has 63 bytes at most, so no resolver is asked */

	memset(impossible, 'x', sizeof(impossible));
	impossible[sizeof(impossible) - 1] = '\0';
	ck_assert_int_eq(tcp_listeners(impossible, 0, KEEPALIVE, NULL, l), -EADDRNOTAVAIL);
	ck_assert_int_eq(tcp_listeners("192.0.2.1", 0, KEEPALIVE, NULL, l), -EADDRNOTAVAIL);
}

/* --- passed -------------------------------------------------------------------------------------------------------- */

TEST(a_passed_descriptor_must_be_a_listening_stream_socket)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int stream = socket(AF_INET, SOCK_STREAM, 0), datagram = socket(AF_INET, SOCK_DGRAM, 0),
	    packets = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct listener l;

	ck_assert(!bind(stream, (struct sockaddr *)&a, sizeof(a)));
	ck_assert_int_eq(listener_fd(stream, KEEPALIVE, &l), -EINVAL);
	ck_assert_int_eq(listener_fd(datagram, KEEPALIVE, &l), -EINVAL);
	ck_assert_int_eq(listener_fd(packets, KEEPALIVE, &l), -EINVAL);
	ck_assert_int_eq(listener_fd(0, KEEPALIVE, &l), -EINVAL);
	ck_assert_int_eq(listener_fd(-1, KEEPALIVE, &l), -EINVAL);
	ck_assert(!listen(stream, 8));
	ck_assert_int_eq(listener_fd(stream, KEEPALIVE, &l), 0);
	ck_assert_int_eq(l.fd, stream);
	ck_assert_int_eq(fcntl(stream, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	ck_assert_int_eq(fcntl(stream, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	listener_release(&l);
	close(datagram);
	close(packets);
}

TEST(the_path_of_a_passed_unix_socket_is_not_ours_to_unlink)
{
	struct listener made, passed;

	ck_assert_int_eq(listener_unix(path, &open_to_all, &made), 0);
	ck_assert_int_eq(listener_fd(dup(made.fd), KEEPALIVE, &passed), 0);
	listener_release(&passed);
	ck_assert_int_eq(unix_connect(), 0);
	listener_release(&made);
}

/* --- addresses ----------------------------------------------------------------------------------------------------- */

static struct peer peer_of(const char *address, uint16_t port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct peer p;

	if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1) {
		address_peer(-1, (struct sockaddr *)&in6, &p);
	} else {
		ck_assert_int_eq(inet_pton(AF_INET, address, &in.sin_addr), 1);
		address_peer(-1, (struct sockaddr *)&in, &p);
	}
	return p;
}

TEST(addresses_are_shown_and_judged)
{
	static const struct {
		const char *address, *text;
		bool is_local;
	} cases[] = {
		{"127.0.0.1", "127.0.0.1:65535", true},
		{"127.255.1.2", "127.255.1.2:65535", true},
		{"128.0.0.1", "128.0.0.1:65535", false},
		{"10.0.0.5", "10.0.0.5:65535", false},
		{"::1", "[::1]:65535", true},
		{"::2", "[::2]:65535", false},
		{"::ffff:127.0.0.1", "127.0.0.1:65535", true},
		{"::ffff:10.0.0.5", "10.0.0.5:65535", false},
		{"fe80:1111:2222:3333:4444:5555:6666:7777", "[fe80:1111:2222:3333:4444:5555:6666:7777]:65535", false},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct peer p = peer_of(cases[i].address, 65535);

		ck_assert_str_eq(p.address, cases[i].text);
		ck_assert_msg(p.is_local == cases[i].is_local, "%s", cases[i].address);
		ck_assert(!p.is_unix && p.pid == -1 && p.uid == -1);
	}
}
