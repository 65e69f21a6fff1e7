/* SPDX-License-Identifier: BSD-2-Clause */
/* All nodes, and whether their settings are the same. It must never allocate for the upstream itself while a parcel is made, and the other way round. */
#include "daemon/redis/carry.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"
#include "daemon/redis/node_carry.h"
#include "daemon/redis/settings.h"
#include "daemon/redis/upstream_parts.h"

#include <assert.h>

bool upstream_is_quiet(const struct upstream *u)
{
	bool quiet = !u->refused.count;

	for (unsigned i = 0; i < u->nodes; i++)
		quiet &= node_is_quiet(u->node[i]);
	return quiet;
}

void upstream_give_up(struct upstream *u)
{
	for (unsigned i = 0; i < u->nodes; i++)
		node_give_up(u->node[i], "it did not answer before a restart of the daemon");
	upstream_answer_refused(u);
}

struct upstream_parcel *upstream_pack(struct upstream *u, struct fdlist *fds)
{
	struct upstream_parcel *p = mem_alloc(sizeof(*p));

	assert(upstream_is_quiet(u));
	rng_seed_from_system(p->salt);
	settings_digest_scripts(p->salt, p->scripts);
	p->nodes = u->nodes;
	p->links = u->conf.links;
	p->node = mem_alloc(u->nodes * sizeof(*p->node));
	for (unsigned i = 0; i < u->nodes; i++) {
		settings_digest(u, i, p->salt, p->node[i].settings);
		node_pack(u->node[i], &p->node[i], fds);
	}
	return p;
}

static void upstream_unpack_node(struct upstream *u, unsigned i, const struct upstream_parcel *p, bool reload, struct fdlist *fds)
{
	unsigned char settings[TLS_DIGEST_BYTES];

	settings_digest(u, i, p->salt, settings);
	node_unpack(u->node[i], &p->node[i], memcmp(settings, p->node[i].settings, sizeof(settings)) == 0, reload, fds);
}

void upstream_unpack(struct upstream *u, struct upstream_parcel *p, struct fdlist *fds)
{
	struct segment *before = mem_use(NULL);
	unsigned char scripts[TLS_DIGEST_BYTES];
	bool reload;

	settings_digest_scripts(p->salt, scripts);
	reload = memcmp(scripts, p->scripts, sizeof(scripts)) != 0;
	for (unsigned i = 0; i < p->nodes; i++) {
		if (i < u->nodes)
			upstream_unpack_node(u, i, p, reload, fds);
		node_parcel_end(&p->node[i], p->links, fds);
	}
	mem_free(p->node);
	mem_free(p);
	mem_use(before);
}
