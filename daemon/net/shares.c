/* SPDX-License-Identifier: BSD-2-Clause */
/* See shares.h. */
#include "daemon/net/shares.h"

#include "daemon/base/rng.h"

#define KEPT_MOST 16u

struct user {
	struct map_node node;
	uid_t uid;
	unsigned sessions;
};

void shares_init(struct shares *s, uid_t own)
{
	uint64_t key[2];

	rng_seed_from_system(key);
	*s = (struct shares){.own = own};
	map_init(&s->users, key);
	pool_init(&s->pool, sizeof(struct user));
}

void shares_release(struct shares *s)
{
	struct map_node *node;

	while ((node = map_next(&s->users, NULL))) {
		map_remove(&s->users, node);
		pool_put(&s->pool, container_of(node, struct user, node));
	}
	map_release(&s->users);
	pool_release(&s->pool);
}

static bool is_administrator(const struct shares *s, uid_t uid)
{
	return uid == 0 || uid == s->own;
}

static bool user_matches(const struct map_node *node, const void *key, size_t n)
{
	return memcmp(&container_of(node, struct user, node)->uid, key, n) == 0;
}

static struct user *user_find(const struct shares *s, uid_t uid)
{
	struct map_node *node = map_find(&s->users, map_hash(&s->users, &uid, sizeof(uid)), &uid, sizeof(uid), user_matches);

	return node ? container_of(node, struct user, node) : NULL;
}

unsigned shares_kept(unsigned most)
{
	if (most <= 1)
		return 0;
	if (most / 64 == 0)
		return 1;
	return most / 64 < KEPT_MOST ? most / 64 : KEPT_MOST;
}

enum share shares_ask(struct shares *s, uid_t uid, unsigned live, unsigned most)
{
	unsigned others = most - shares_kept(most);
	const struct user *u;

	if (live >= most)
		return SHARE_FULL;
	if (is_administrator(s, uid))
		return SHARE_LEFT;
	if (!s->asked)
		s->first = uid;
	s->asked = true;
	s->several |= uid != s->first;
	if (live >= others)
		return SHARE_KEPT;
	u = user_find(s, uid);
	return s->several && u && u->sessions > SHARES_RATIO * (others - live) ? SHARE_USED_UP : SHARE_LEFT;
}

void shares_take(struct shares *s, uid_t uid)
{
	struct user *u = user_find(s, uid);

	if (is_administrator(s, uid))
		return;
	if (!u) {
		u = pool_get(&s->pool);
		u->uid = uid;
		map_insert(&s->users, &u->node, map_hash(&s->users, &uid, sizeof(uid)));
	}
	u->sessions++;
}

void shares_give(struct shares *s, uid_t uid)
{
	struct user *u;

	if (is_administrator(s, uid))
		return;
	u = user_find(s, uid);
	if (--u->sessions > 0)
		return;
	map_remove(&s->users, &u->node);
	pool_put(&s->pool, u);
}
