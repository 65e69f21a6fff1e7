/* SPDX-License-Identifier: BSD-2-Clause */
/* See user.h. */
#include "daemon/core/session/user.h"

#include "daemon/base/mem.h"

#include <string.h>

void users_init(struct users *t, const uint64_t key[2])
{
	map_init(&t->by_name, key);
	TAILQ_INIT(&t->all);
}

static void user_forget(struct users *t, struct user *u)
{
	TAILQ_REMOVE(&t->all, u, in_users);
	map_remove(&t->by_name, &u->by_name);
	roll_release(&u->recent);
	mem_free(u);
}

void users_release(struct users *t)
{
	while (!TAILQ_EMPTY(&t->all))
		user_forget(t, TAILQ_FIRST(&t->all));
	map_release(&t->by_name);
}

static bool user_matches(const struct map_node *node, const void *name, size_t n)
{
	const struct user *u = container_of(node, struct user, by_name);

	return u->n == n && memcmp(u->name, name, n) == 0;
}

struct user *users_find_or_add(struct users *t, struct span name)
{
	uint64_t hash = map_hash(&t->by_name, name.p, name.n);
	struct map_node *node = map_find(&t->by_name, hash, name.p, name.n, user_matches);
	struct user *u;

	if (node)
		return container_of(node, struct user, by_name);
	u = mem_alloc(sizeof(*u) + name.n);
	u->n = name.n;
	memcpy(u->name, name.p, name.n);
	roll_init(&u->recent, t->by_name.key, USER_RECENTS);
	map_insert(&t->by_name, &u->by_name, hash);
	TAILQ_INSERT_TAIL(&t->all, u, in_users);
	return u;
}

void users_trim(struct users *t)
{
	struct user *u, *next;

	for (u = TAILQ_FIRST(&t->all); u && t->by_name.count > USERS_MOST; u = next) {
		next = TAILQ_NEXT(u, in_users);
		if (u->refs == 0)
			user_forget(t, u);
	}
}
