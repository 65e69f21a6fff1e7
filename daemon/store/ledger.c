/* SPDX-License-Identifier: BSD-2-Clause */
/* See ledger.h. */
#include "daemon/store/ledger.h"

#include "daemon/base/mem.h"

struct ledger_peer {
	struct map_node by_name;
	int64_t bytes;
	size_t n;
	char name[];
};

void ledger_init(struct ledger *l, const uint64_t key[2])
{
	*l = (struct ledger){.all = 0};
	map_init(&l->peers, key);
}

static void peer_free(struct ledger *l, struct map_node *node)
{
	map_remove(&l->peers, node);
	mem_free(container_of(node, struct ledger_peer, by_name));
}

void ledger_release(struct ledger *l)
{
	struct map_node *node;

	while ((node = map_next(&l->peers, NULL)))
		peer_free(l, node);
	map_release(&l->peers);
}

MAP_MATCH(peer_matches, struct ledger_peer, by_name, name, n)

static struct map_node *peer_find(const struct ledger *l, struct span name)
{
	return map_find(&l->peers, map_hash(&l->peers, name.p, name.n), name.p, name.n, peer_matches);
}

static struct map_node *peer_add(struct ledger *l, struct span name)
{
	struct ledger_peer *p = mem_alloc(sizeof(*p) + name.n);

	p->n = name.n;
	memcpy(p->name, name.p, name.n);
	map_insert(&l->peers, &p->by_name, map_hash(&l->peers, name.p, name.n));
	return &p->by_name;
}

void ledger_charge(struct ledger *l, struct span peer, int64_t bytes)
{
	struct map_node *node;
	struct ledger_peer *p;

	l->all += bytes;
	if (peer.n == 0)
		return;
	node = peer_find(l, peer);
	if (!node)
		node = peer_add(l, peer);
	p = container_of(node, struct ledger_peer, by_name);
	p->bytes += bytes;
	if (p->bytes <= 0)
		peer_free(l, node);
}

char ledger_too_much(const struct ledger *l, struct span peer, int64_t bytes, int64_t most, int64_t peer_most)
{
	struct map_node *node = peer_most > 0 ? peer_find(l, peer) : NULL;
	int64_t of_peer = node ? container_of(node, struct ledger_peer, by_name)->bytes : 0;

	return l->all + bytes > most ? '*' : peer_most > 0 && of_peer + bytes > peer_most ? 'p' : 0;
}
