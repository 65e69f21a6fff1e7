/* SPDX-License-Identifier: BSD-2-Clause */
/* See former_holders.h. */
#include "daemon/core/reply/former_holders.h"

#include "daemon/base/mem.h"
#include "daemon/core/reply/rows.h"

#include <string.h>

#define END_BYTES 16 /* the longest word with its NUL */
#define WHO_BYTES 96 /* of a holder; the rest of a long label is cut off */

struct hold {
	struct instant granted_at, ended_at;
	int64_t fence;
	char end[END_BYTES];
	char who[WHO_BYTES];
	size_t who_n;
};

struct former_name {
	struct map_node node;
	TAILQ_ENTRY(former_name) by_age;
	unsigned holds, next; /* hold[next] is written next: the oldest */
	struct hold hold[FORMER_HOLDS];
	size_t n;
	char name[];
};

struct formers {
	struct map map;
	TAILQ_HEAD(, former_name) by_age; /* the one that was used last is the last */
	unsigned count;
};

static bool name_matches(const struct map_node *node, const void *name, size_t n)
{
	const struct former_name *f = container_of(node, struct former_name, node);

	return f->n == n && memcmp(f->name, name, n) == 0;
}

static struct former_name *former_find(struct formers *all, struct span name, uint64_t *ret_hash)
{
	struct map_node *node;

	*ret_hash = map_hash(&all->map, name.p, name.n);
	node = map_find(&all->map, *ret_hash, name.p, name.n, name_matches);
	return node ? container_of(node, struct former_name, node) : NULL;
}

static void former_drop(struct formers *all, struct former_name *f)
{
	map_remove(&all->map, &f->node);
	TAILQ_REMOVE(&all->by_age, f, by_age);
	all->count--;
	mem_free(f);
}

static struct former_name *former_add(struct formers *all, struct span name, uint64_t hash)
{
	struct former_name *f = mem_alloc(sizeof(*f) + name.n);

	if (all->count == FORMER_NAMES)
		former_drop(all, TAILQ_FIRST(&all->by_age));
	f->n = name.n;
	memcpy(f->name, name.p, name.n);
	map_insert(&all->map, &f->node, hash);
	all->count++;
	return f;
}

static struct formers *formers_of(struct request_context *x)
{
	if (!x->formers) {
		x->formers = mem_alloc(sizeof(*x->formers));
		map_init(&x->formers->map, x->core->conf.seed);
		TAILQ_INIT(&x->formers->by_age);
	}
	return x->formers;
}

void former_note(struct request_context *x, const struct claim *c, const char *end)
{
	struct formers *all;
	struct former_name *f;
	struct hold *h;
	uint64_t hash;
	char who[WHO_MAX];
	size_t n;

	if (c->session->principal) /* a part of a LOCKALL that is not granted yet, or of a permit */
		return;
	all = formers_of(x);
	f = former_find(all, lock_name(c->lock), &hash);
	if (f)
		TAILQ_REMOVE(&all->by_age, f, by_age);
	else
		f = former_add(all, lock_name(c->lock), hash);
	TAILQ_INSERT_TAIL(&all->by_age, f, by_age);
	h = &f->hold[f->next];
	f->next = (f->next + 1) % FORMER_HOLDS;
	f->holds += f->holds < FORMER_HOLDS;
	n = session_who(c->session, who);
	*h = (struct hold){.granted_at = c->granted_at, .ended_at = x->core->now, .fence = c->token, .who_n = n < WHO_BYTES ? n : WHO_BYTES};
	memcpy(h->who, who, h->who_n);
	core_keep(h->end, sizeof(h->end), span_of(end));
}

static void row_former(struct request_context *x, struct session *s, struct span tag, const struct hold *h, unsigned pos)
{
	struct reply r;

	row_begin(x, tag, &r);
	reply_text(&r, "role", SPAN("former"));
	reply_int(&r, "pos", pos);
	reply_text(&r, "holder", (struct span){h->who, h->who_n});
	reply_int(&r, "fence", h->fence);
	reply_ms(&r, "held_ms", instant_diff(h->ended_at, h->granted_at));
	reply_ms(&r, "ended_ms", instant_diff(x->core->now, h->ended_at));
	reply_text(&r, "end", span_of(h->end));
	row_end(x, s, &r);
}

unsigned former_rows(struct request_context *x, struct session *s, struct span tag, struct span name)
{
	uint64_t hash;
	const struct former_name *f = x->formers ? former_find(x->formers, name, &hash) : NULL;

	if (!f)
		return 0;
	for (unsigned i = 1; i <= f->holds; i++)
		row_former(x, s, tag, &f->hold[(f->next + FORMER_HOLDS - i) % FORMER_HOLDS], i);
	return f->holds;
}

void formers_free(struct request_context *x)
{
	if (!x->formers)
		return;
	while (!TAILQ_EMPTY(&x->formers->by_age))
		former_drop(x->formers, TAILQ_FIRST(&x->formers->by_age));
	map_release(&x->formers->map);
	mem_free(x->formers);
	x->formers = NULL;
}
