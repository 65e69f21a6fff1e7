/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/passed.c: which hosts can reach a listening socket. */
#include "daemon/main/passed.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

TEST(loopback_stays_within_the_host)
{
	ck_assert(!reach_of_host(NULL));
	ck_assert(!reach_of_host("127.0.0.1"));
	ck_assert(!reach_of_host("127.0.0.2"));
	ck_assert(!reach_of_host("::1"));
	ck_assert(!reach_of_host("localhost"));
	ck_assert(reach_of_host("0.0.0.0"));
	ck_assert(reach_of_host("::"));
	ck_assert(reach_of_host("10.0.0.1"));
	ck_assert(reach_of_host("db1.example"));
	ck_assert(reach_of_host("127.db1.example")); /* a name, whatever it resolves to */
}

static bool reach_of_ipv4(const char *text)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool reach;

	ck_assert_int_eq(inet_pton(AF_INET, text, &at.sin_addr), 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	reach = reach_of_socket(fd);
	close(fd);
	return reach;
}

TEST(passed_sockets_are_judged_by_where_they_listen)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert(!reach_of_ipv4("127.0.0.1"));
	ck_assert(!reach_of_ipv4("127.0.0.2"));
	ck_assert(reach_of_ipv4("0.0.0.0"));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(sa_family_t)), 0); /* a name of the kernel's */
	ck_assert(!reach_of_socket(fd));
	close(fd);
	ck_assert(reach_of_socket(-1)); /* in doubt */
}
