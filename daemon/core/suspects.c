/* SPDX-License-Identifier: BSD-2-Clause */
/* See suspects.h. */
#include "daemon/core/suspects.h"

#include "daemon/base/mem.h"
#include "daemon/base/peer.h"

#include <limits.h>
#include <string.h>

void suspects_init(struct suspects *a, const uint64_t key[2])
{
	map_init(&a->by_name, key);
	TAILQ_INIT(&a->all);
}

static bool suspect_matches(const struct map_node *node, const void *name, size_t n)
{
	const struct suspect *s = container_of(node, struct suspect, by_name);

	return s->n == n && memcmp(s->name, name, n) == 0;
}

static void suspect_forget(struct suspects *a, struct suspect *s)
{
	TAILQ_REMOVE(&a->all, s, in_all);
	map_remove(&a->by_name, &s->by_name);
	mem_free(s);
}

void suspects_release(struct suspects *a)
{
	struct suspect *s;

	while ((s = TAILQ_FIRST(&a->all)))
		suspect_forget(a, s);
	map_release(&a->by_name);
}

/* Forgets the first ones that may be forgotten: they are in the order of their last failures. */
static void suspects_trim(struct suspects *a, struct instant now)
{
	struct suspect *s, *next;

	for (s = TAILQ_FIRST(&a->all); s; s = next) {
		next = TAILQ_NEXT(s, in_all);
		if (a->by_name.count <= SUSPECTS_MOST && !suspect_is_forgiven(s, now))
			return;
		if (s->refs == 0)
			suspect_forget(a, s);
	}
}

static bool suspect_is_of(const struct suspect *s, struct span origin)
{
	return s->n > origin.n && s->name[origin.n] == '\0' && memcmp(s->name, origin.p, origin.n) == 0;
}

/* How many users have failed at the origin of this one. ret_first: the one that is forgotten next; NULL: none may be. */
static unsigned suspects_beside(const struct suspects *a, const struct suspect *of, struct instant now, struct suspect **ret_first)
{
	struct span origin = span_of(of->name);
	struct suspect *s;
	unsigned n = 0;

	*ret_first = NULL;
	TAILQ_FOREACH(s, &a->all, in_all) {
		if (suspect_is_forgiven(s, now) || !suspect_is_of(s, origin))
			continue;
		n++;
		if (!*ret_first && s->refs == 0)
			*ret_first = s;
	}
	return n;
}

unsigned suspect_failures(const struct suspects *a, const struct suspect *s, struct instant now)
{
	struct suspect *first;

	if (suspects_beside(a, s, now, &first) >= SUSPECTS_OF_ONE)
		return UINT_MAX;
	return suspect_is_forgiven(s, now) ? 0 : s->failed;
}

struct suspect *suspects_find_or_add(struct suspects *a, struct span origin, struct span user, struct instant now)
{
	char name[PEER_ORIGIN_MAX + 1 + SUSPECT_USER_MOST];
	size_t of_user = user.n < SUSPECT_USER_MOST ? user.n : SUSPECT_USER_MOST, n = origin.n + 1 + of_user;
	struct map_node *node;
	struct suspect *s;
	uint64_t hash;

	suspects_trim(a, now);
	memcpy(name, origin.p, origin.n);
	name[origin.n] = '\0';
	memcpy(name + origin.n + 1, user.p, of_user);
	hash = map_hash(&a->by_name, name, n);
	node = map_find(&a->by_name, hash, name, n, suspect_matches);
	if (node)
		return container_of(node, struct suspect, by_name);
	s = mem_alloc(sizeof(*s) + n);
	s->n = n;
	memcpy(s->name, name, n);
	map_insert(&a->by_name, &s->by_name, hash);
	TAILQ_INSERT_TAIL(&a->all, s, in_all);
	return s;
}

void suspect_failed(struct suspects *a, struct suspect *s, struct instant now)
{
	struct suspect *first;

	s->failed = suspect_is_forgiven(s, now) ? 1 : s->failed + 1;
	s->failed_at = now;
	TAILQ_REMOVE(&a->all, s, in_all);
	TAILQ_INSERT_TAIL(&a->all, s, in_all);
	if (suspects_beside(a, s, now, &first) > SUSPECTS_OF_ONE && first)
		suspect_forget(a, first);
}

void suspect_leave(struct suspects *a, struct suspect *s)
{
	if (--s->refs == 0 && s->failed == 0)
		suspect_forget(a, s);
}
