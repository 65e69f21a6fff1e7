/* SPDX-License-Identifier: BSD-2-Clause */
/* See turns.h. */
#include "daemon/core/event/turns.h"

#include "daemon/base/mem.h"

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
