/* SPDX-License-Identifier: BSD-2-Clause */
/* See rights.h. */
#include "daemon/core/rights/rights.h"

#include "daemon/base/mem.h"
#include "daemon/base/peer.h"

#include <string.h>

#define SUSPECT_NAME_MOST (PEER_ORIGIN_MAX + 1 + SUSPECT_USER_MOST)

/* The suspects of one origin. It exists while it has any. */
struct suspects_of_one {
	struct map_node by_name;
	TAILQ_HEAD(, suspect) users; /* the one whose last failure is oldest comes first */
	unsigned count;
	size_t n;
	char name[];
};

struct suspect {
	struct map_node by_name;
	TAILQ_ENTRY(suspect) in_all, in_origin;
	struct suspects_of_one *origin;
	unsigned failed; /* failures in a row */
	struct instant failed_at;
	size_t n;
	char name[]; /* the origin, NUL, the user */
};

void suspects_init(struct suspects *a, const uint64_t key[2])
{
	map_init(&a->by_name, key);
	map_init(&a->origins, key);
	TAILQ_INIT(&a->all);
}

static void suspect_forget(struct suspects *a, struct suspect *s)
{
	struct suspects_of_one *o = s->origin;

	TAILQ_REMOVE(&a->all, s, in_all);
	TAILQ_REMOVE(&o->users, s, in_origin);
	map_remove(&a->by_name, &s->by_name);
	mem_free(s);
	if (--o->count > 0)
		return;
	map_remove(&a->origins, &o->by_name);
	mem_free(o);
}

void suspects_release(struct suspects *a)
{
	struct suspect *s;

	while ((s = TAILQ_FIRST(&a->all)))
		suspect_forget(a, s);
	map_release(&a->by_name);
	map_release(&a->origins);
}

static void suspects_forgive(struct suspects *a, struct instant now)
{
	struct suspect *s;

	while ((s = TAILQ_FIRST(&a->all)) && instant_diff(now, s->failed_at) >= SUSPECT_FORGIVEN)
		suspect_forget(a, s);
}

/* --- finding --- */

MAP_MATCH(origin_matches, struct suspects_of_one, by_name, name, n)

static struct suspects_of_one *origin_find(const struct suspects *a, struct span origin)
{
	struct map_node *node = map_find(&a->origins, map_hash(&a->origins, origin.p, origin.n), origin.p, origin.n, origin_matches);

	return node ? container_of(node, struct suspects_of_one, by_name) : NULL;
}

static struct suspects_of_one *origin_find_or_add(struct suspects *a, struct span origin)
{
	struct suspects_of_one *o = origin_find(a, origin);

	if (o)
		return o;
	o = mem_alloc(sizeof(*o) + origin.n);
	TAILQ_INIT(&o->users);
	o->n = origin.n;
	memcpy(o->name, origin.p, origin.n);
	map_insert(&a->origins, &o->by_name, map_hash(&a->origins, origin.p, origin.n));
	return o;
}

/* Returns the length. */
static size_t suspect_name(struct span origin, struct span user, char name[SUSPECT_NAME_MOST])
{
	size_t of_user = user.n < SUSPECT_USER_MOST ? user.n : SUSPECT_USER_MOST;

	memcpy(name, origin.p, origin.n);
	name[origin.n] = '\0';
	memcpy(name + origin.n + 1, user.p, of_user);
	return origin.n + 1 + of_user;
}

MAP_MATCH(suspect_matches, struct suspect, by_name, name, n)

static struct suspect *suspect_find(const struct suspects *a, const char *name, size_t n)
{
	struct map_node *node = map_find(&a->by_name, map_hash(&a->by_name, name, n), name, n, suspect_matches);

	return node ? container_of(node, struct suspect, by_name) : NULL;
}

static struct suspect *suspect_find_or_add(struct suspects *a, struct span origin, struct span user)
{
	char name[SUSPECT_NAME_MOST];
	size_t n = suspect_name(origin, user, name);
	struct suspect *s = suspect_find(a, name, n);

	if (s)
		return s;
	s = mem_alloc(sizeof(*s) + n);
	s->n = n;
	memcpy(s->name, name, n);
	s->origin = origin_find_or_add(a, origin);
	s->origin->count++;
	map_insert(&a->by_name, &s->by_name, map_hash(&a->by_name, name, n));
	TAILQ_INSERT_TAIL(&a->all, s, in_all);
	TAILQ_INSERT_TAIL(&s->origin->users, s, in_origin);
	return s;
}

/* --- failures --- */

void suspect_failed(struct suspects *a, struct span origin, struct span user, struct instant now)
{
	struct suspect *s;

	suspects_forgive(a, now);
	s = suspect_find_or_add(a, origin, user);
	s->failed++;
	s->failed_at = now;
	TAILQ_REMOVE(&a->all, s, in_all);
	TAILQ_INSERT_TAIL(&a->all, s, in_all);
	TAILQ_REMOVE(&s->origin->users, s, in_origin);
	TAILQ_INSERT_TAIL(&s->origin->users, s, in_origin);
	if (s->origin->count > SUSPECTS_OF_ONE)
		suspect_forget(a, TAILQ_FIRST(&s->origin->users));
	if (a->by_name.count > SUSPECTS_MOST)
		suspect_forget(a, TAILQ_FIRST(&a->all));
}

unsigned suspect_failures(struct suspects *a, struct span origin, struct span user, struct instant now)
{
	char name[SUSPECT_NAME_MOST];
	struct suspect *s;

	suspects_forgive(a, now);
	s = suspect_find(a, name, suspect_name(origin, user, name));
	return s ? s->failed : 0;
}
