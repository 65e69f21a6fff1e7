/* SPDX-License-Identifier: BSD-2-Clause */
/* See crowds.h. */
#include "daemon/net/crowds.h"

#include "daemon/base/mem.h"
#include "daemon/base/rng.h"

#include <stdlib.h>
#include <string.h>

void crowds_init(struct crowds *c, uid_t own)
{
	uint64_t key[2];

	rng_seed_from_system(key);
	*c = (struct crowds){.own = own};
	map_init(&c->by_peer, key);
}

void crowds_release(struct crowds *c)
{
	map_release(&c->by_peer);
}

static bool is_bounded(const struct crowds *c, const struct peer *peer, unsigned most)
{
	if (most == 0 || most >= CROWDS_UNBOUNDED)
		return false;
	return peer->is_unix ? peer->uid > 0 && (uid_t)peer->uid != c->own : !peer->is_local;
}

static size_t peer_name(const struct peer *peer, char out[PEER_ORIGIN_MAX])
{
	return peer_origin(peer->is_unix, peer->uid, peer->address, strlen(peer->address), out);
}

static bool crowd_matches(const struct map_node *node, const void *name, size_t n)
{
	const struct crowd *crowd = container_of(node, struct crowd, by_peer);

	return crowd->n == n && memcmp(crowd->name, name, n) == 0;
}

static struct crowd *crowd_find(const struct crowds *c, const char *name, size_t n)
{
	struct map_node *node = map_find(&c->by_peer, map_hash(&c->by_peer, name, n), name, n, crowd_matches);

	return node ? container_of(node, struct crowd, by_peer) : NULL;
}

bool crowds_has_room(const struct crowds *c, const struct peer *peer, unsigned most)
{
	const struct crowd *crowd;
	char name[PEER_ORIGIN_MAX];

	if (!is_bounded(c, peer, most))
		return true;
	crowd = crowd_find(c, name, peer_name(peer, name));
	return !crowd || crowd->sessions < most;
}

struct crowd *crowds_enter(struct crowds *c, const struct peer *peer)
{
	char name[PEER_ORIGIN_MAX];

	return crowds_join(c, name, peer_name(peer, name));
}

struct crowd *crowds_join(struct crowds *c, const char *name, size_t n)
{
	struct crowd *crowd = crowd_find(c, name, n);

	if (!crowd) {
		crowd = mem_alloc(sizeof(*crowd));
		crowd->n = n;
		memcpy(crowd->name, name, n);
		map_insert(&c->by_peer, &crowd->by_peer, map_hash(&c->by_peer, name, n));
	}
	crowd->sessions++;
	return crowd;
}

void crowds_leave(struct crowds *c, struct crowd *crowd)
{
	if (!crowd || --crowd->sessions > 0)
		return;
	map_remove(&c->by_peer, &crowd->by_peer);
	free(crowd);
}
