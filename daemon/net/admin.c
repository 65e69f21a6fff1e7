/* SPDX-License-Identifier: BSD-2-Clause */
/* See admin.h. The kernel tells user and groups of the peer as they were when it connected. */
#include "daemon/net/admin.h"

#include "daemon/base/mem.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

int64_t admin_group(void)
{
	const struct group *g = getgrnam(ADMIN_GROUP);

	return g ? (int64_t)g->gr_gid : -1;
}

static bool is_main_group(int fd, gid_t group)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && n == sizeof(who) && who.gid == group;
}

static bool is_further_group(int fd, gid_t group)
{
	gid_t few[64], *all = few;
	socklen_t n = sizeof(few);
	bool found = false;
	int r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &n);

	if (r < 0 && n > sizeof(few)) {
		all = mem_alloc(n);
		r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, all, &n);
	}
	for (size_t i = 0; r == 0 && i < n / sizeof(gid_t) && !found; i++)
		found = all[i] == group;
	if (all != few)
		free(all);
	return found;
}

bool admin_is_peer(int fd, const struct peer *peer, int64_t group)
{
	if (!peer->is_unix || peer->uid < 0)
		return false;
	if (peer->uid == 0 || (uid_t)peer->uid == geteuid())
		return true;
	return group >= 0 && (is_main_group(fd, (gid_t)group) || is_further_group(fd, (gid_t)group));
}
