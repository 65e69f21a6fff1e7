/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/event/origin.h"

#include "daemon/base/mem.h"

#include <string.h>

void origins_init(struct origins *t, const uint64_t key[2])
{
	map_init(&t->by_name, key);
}

static void origin_free(struct origin *o)
{
	map_remove(&o->all->by_name, &o->by_name);
	mem_free(o);
}

void origins_release(struct origins *t)
{
	struct map_node *node;

	while ((node = map_next(&t->by_name, NULL)))
		origin_free(container_of(node, struct origin, by_name));
	map_release(&t->by_name);
}

MAP_MATCH(origin_matches, struct origin, by_name, name, n)

static struct origin *origin_add(struct origins *t, struct span name, uint64_t hash)
{
	struct origin *o = mem_alloc(sizeof(*o) + name.n);

	o->all = t;
	TAILQ_INIT(&o->vacant);
	LIST_INIT(&o->lines);
	LIST_INIT(&o->takes);
	o->n = name.n;
	memcpy(o->name, name.p, name.n);
	map_insert(&t->by_name, &o->by_name, hash);
	return o;
}

struct origin *origin_join(struct origins *t, struct span name)
{
	uint64_t hash = map_hash(&t->by_name, name.p, name.n);
	struct map_node *node = map_find(&t->by_name, hash, name.p, name.n, origin_matches);
	struct origin *o = node ? container_of(node, struct origin, by_name) : origin_add(t, name, hash);

	o->sessions++;
	return o;
}

void origin_refer(struct origin *o)
{
	if (o)
		o->sessions++;
}

void origin_leave(struct origin *o)
{
	if (!o)
		return;
	o->sessions--;
	origin_drop_if_unused(o);
}

void origin_thin(struct origin *o, uint64_t n)
{
	if (!o)
		return;
	o->crowd -= n;
	o->all->crowd -= n;
	origin_drop_if_unused(o);
}

void origin_asked(struct origin *o)
{
	if (!o)
		return;
	o->under_way--;
	o->all->under_way--;
	origin_drop_if_unused(o);
}

void origin_order_over(struct origin *o, uint64_t bytes)
{
	if (!o)
		return;
	o->orders -= bytes;
	o->all->orders -= bytes;
	origin_drop_if_unused(o);
}

void origin_question_end(struct origin *o)
{
	if (!o)
		return;
	o->questions--;
	origin_drop_if_unused(o);
}

void origin_drop_if_unused(struct origin *o)
{
	if (o->sessions == 0 && o->names == 0 && o->queues == 0 && o->crowd == 0 && o->under_way == 0 && o->orders == 0 && o->questions == 0 &&
	    LIST_EMPTY(&o->lines))
		origin_free(o);
}

void turns_init(struct turns *t)
{
	TAILQ_INIT(&t->lines);
	t->unknown = NULL;
}

static struct peer_line *line_find(struct turns *t, const struct origin *o)
{
	struct peer_line *line;

	if (!o)
		return t->unknown;
	LIST_FOREACH(line, &o->lines, of_origin)
		if (line->turns == t)
			return line;
	return NULL;
}

static struct peer_line *line_add(struct turns *t, struct origin *o)
{
	struct peer_line *line = mem_alloc(sizeof(*line));

	line->turns = t;
	line->origin = o;
	TAILQ_INIT(&line->waiting);
	TAILQ_INSERT_TAIL(&t->lines, line, in_turns);
	if (o)
		LIST_INSERT_HEAD(&o->lines, line, of_origin);
	else
		t->unknown = line;
	return line;
}

static void line_free(struct peer_line *line)
{
	struct origin *o = line->origin;

	TAILQ_REMOVE(&line->turns->lines, line, in_turns);
	if (o) {
		LIST_REMOVE(line, of_origin);
		origin_drop_if_unused(o);
	} else {
		line->turns->unknown = NULL;
	}
	mem_free(line);
}

void turns_release(struct turns *t)
{
	while (!turns_none(t))
		line_free(TAILQ_FIRST(&t->lines));
}

void turn_wait(struct turns *t, struct turn *turn, struct origin *o)
{
	struct peer_line *line = line_find(t, o);

	turn->line = line ? line : line_add(t, o);
	TAILQ_INSERT_TAIL(&turn->line->waiting, turn, in_line);
}

void turn_leave(struct turn *turn)
{
	struct peer_line *line = turn->line;

	TAILQ_REMOVE(&line->waiting, turn, in_line);
	if (TAILQ_EMPTY(&line->waiting))
		line_free(line);
}

void turn_taken(const struct turn *turn)
{
	struct peer_line *line = turn->line;

	TAILQ_REMOVE(&line->turns->lines, line, in_turns);
	TAILQ_INSERT_TAIL(&line->turns->lines, line, in_turns);
}
