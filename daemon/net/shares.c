/* SPDX-License-Identifier: BSD-2-Clause */
/* See shares.h. */
#include "daemon/net/shares.h"

#include "daemon/base/mem.h"
#include "daemon/base/rng.h"

#include <string.h>

#define KEPT_MOST 16u
#define OTHERS    16 /* one in so many sessions is left to other peers */

void shares_init(struct shares *s, uid_t own)
{
	uint64_t key[2];

	rng_seed_from_system(key);
	*s = (struct shares){.own = own};
	map_init(&s->by_peer, key);
}

void shares_release(struct shares *s)
{
	map_release(&s->by_peer);
}

/* --- who may have one more ------------------------------------------------------------------------------------------- */

static bool is_administrator(const struct shares *s, const struct peer *peer)
{
	return peer->is_unix && (peer->uid == 0 || (uid_t)peer->uid == s->own);
}

unsigned shares_kept(unsigned most)
{
	if (most <= 1)
		return 0;
	if (most / 64 == 0)
		return 1;
	return most / 64 < KEPT_MOST ? most / 64 : KEPT_MOST;
}

unsigned shares_most(const struct shares *s, const struct peer *peer, unsigned most, unsigned peer_max)
{
	bool is_loopback = peer->is_local && !peer->is_unix;

	if (is_administrator(s, peer))
		return most;
	most -= most / OTHERS;
	return peer_max > 0 && peer_max < most && !is_loopback ? peer_max : most;
}

static size_t peer_name(const struct peer *peer, char out[PEER_ORIGIN_MAX])
{
	return peer_origin(peer->is_unix, peer->uid, peer->address, strlen(peer->address), out);
}

MAP_MATCH(share_matches, struct share, by_peer, name, n)

static struct share *share_find(const struct shares *s, const char *name, size_t n)
{
	struct map_node *node = map_find(&s->by_peer, map_hash(&s->by_peer, name, n), name, n, share_matches);

	return node ? container_of(node, struct share, by_peer) : NULL;
}

enum share_left shares_ask(const struct shares *s, const struct peer *peer, unsigned live, unsigned most, unsigned peer_max)
{
	const struct share *share;
	char name[PEER_ORIGIN_MAX];

	if (live >= most)
		return SHARE_FULL;
	if (is_administrator(s, peer))
		return SHARE_LEFT;
	if (live >= most - shares_kept(most))
		return SHARE_KEPT;
	share = share_find(s, name, peer_name(peer, name));
	return share && share->sessions >= shares_most(s, peer, most, peer_max) ? SHARE_USED_UP : SHARE_LEFT;
}

/* --- what peers have ------------------------------------------------------------------------------------------------- */

struct share *shares_enter(struct shares *s, const struct peer *peer)
{
	char name[PEER_ORIGIN_MAX];

	return shares_join(s, name, peer_name(peer, name));
}

struct share *shares_join(struct shares *s, const char *name, size_t n)
{
	struct share *share = share_find(s, name, n);

	if (!share) {
		share = mem_alloc(sizeof(*share));
		TAILQ_INIT(&share->waiting);
		share->n = n;
		memcpy(share->name, name, n);
		map_insert(&s->by_peer, &share->by_peer, map_hash(&s->by_peer, name, n));
	}
	share->sessions++;
	return share;
}

void shares_leave(struct shares *s, struct share *share)
{
	if (!share || --share->sessions > 0)
		return;
	map_remove(&s->by_peer, &share->by_peer);
	mem_free(share);
}
