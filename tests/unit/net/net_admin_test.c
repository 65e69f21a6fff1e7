/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/address.c: who may send admin requests. */
#include "daemon/net/address.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOBODY_NUMBER 4242424 /* no user and no group of this process has it */

static int ends[2];

static void ends_open(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

static void ends_close(void)
{
	close(ends[0]);
	close(ends[1]);
}

static bool may(bool is_unix, int64_t uid, int64_t group)
{
	const struct peer peer = {.is_unix = is_unix, .uid = uid};

	return admin_is_peer(ends[0], &peer, group);
}

FIXTURE(.setup = ends_open, .teardown = ends_close)

TEST(root_and_the_user_of_the_daemon_may)
{
	ck_assert(may(true, 0, -1));
	ck_assert(may(true, geteuid(), -1));
	ck_assert(!may(true, NOBODY_NUMBER, -1));
}

TEST(a_member_of_the_group_may)
{
	gid_t groups[256];
	int n = getgroups(256, groups);

	ck_assert(may(true, NOBODY_NUMBER, getgid()));
	for (int i = 0; i < n; i++)
		ck_assert(may(true, NOBODY_NUMBER, groups[i]));
	ck_assert(!may(true, NOBODY_NUMBER, NOBODY_NUMBER));
}

TEST(nobody_may_over_TCP)
{
	ck_assert(!may(false, 0, -1));
	ck_assert(!may(false, -1, getgid()));
	ck_assert(!may(true, -1, getgid()));
}
