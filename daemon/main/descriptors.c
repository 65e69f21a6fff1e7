/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit is read each time: prlimit(1) may change it while the daemon runs. */
#include "daemon/main/descriptors.h"

#include "daemon/base/log.h"
#include "daemon/web/web.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/resource.h>

/* Standard files and the log, locks and folders, the event loop, listeners, the journal and its successor, a lookup of a name, a reload; and some spare. */
#define OWN 32

static uint64_t limit_now(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY ? UINT_MAX : limit.rlim_cur;
}

/* A node has its links, one subscriber, one connection for regular tries, and one to each of its sentinels. */
static uint64_t of_stores(const struct conf *c)
{
	uint64_t n = c->redis.nodes * (c->redis.links + 2);

	for (size_t i = 0; i < c->redis.nodes; i++)
		n += c->redis.node[i].sentinel ? c->redis.node[i].sentinel->count : 0;
	return n;
}

static uint64_t kept(const struct conf *c, size_t passed)
{
	return OWN + passed + (c->listen.http.label ? WEB_DESCRIPTORS : 0) + (c->listen.api.label ? API_DESCRIPTORS : 0) +
	       (c->store == STORE_REDIS ? of_stores(c) : 0);
}

unsigned descriptors_for_clients(const struct conf *c, size_t passed)
{
	uint64_t limit = limit_now(), own = kept(c, passed);

	if (limit <= own)
		return 0;
	return limit - own < UINT_MAX ? (unsigned)(limit - own) : UINT_MAX;
}

void descriptors_warn(const struct conf *c, size_t passed)
{
	unsigned left = descriptors_for_clients(c, passed);

	if (left < c->limits.clients)
		log_event(LOG_WARN, "limits", "clients=%u limits.clients=%" PRIu64 " nofile=%" PRIu64 " needed=%" PRIu64
		          " note=\"for more clients raise LimitNOFILE= of the unit, or ulimit -n\"",
		          left, c->limits.clients, limit_now(), c->limits.clients + kept(c, passed));
}

int descriptors_lack(const struct conf *c, size_t passed)
{
	log_event(LOG_ERROR, "start", "nofile=%" PRIu64 " least=%" PRIu64
	          " error=\"no descriptor is left for clients: raise LimitNOFILE= of the unit, or ulimit -n\"",
	          limit_now(), kept(c, passed) + 1);
	return -EMFILE;
}
