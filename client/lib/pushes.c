/* SPDX-License-Identifier: BSD-2-Clause */
/* See pushes.h. */
#include "client/lib/pushes.h"

#include <errno.h>
#include <stdlib.h>

void pushes_init(struct pushes *p)
{
	STAILQ_INIT(&p->arrived);
	p->n = 0;
	p->missed = false;
	p->shown = NULL;
}

void pushes_release(struct pushes *p)
{
	p->missed = false;
	while (pushes_next(p))
		;
}

int push_new(const char *from, size_t n, struct push **ret_push)
{
	struct push *push = malloc(sizeof(*push) + 2 * n);
	int r;

	if (!push)
		return -ENOMEM;
	push->line.text = push->bytes;
	push->line.scratch = push->bytes + n;
	push->line.room = (struct buffer){NULL, 0};
	r = line_fill(&push->line, from, n);
	if (r) {
		free(push);
		return r;
	}
	*ret_push = push;
	return 0;
}

void push_free(struct push *push)
{
	free(push);
}

void pushes_add(struct pushes *p, struct push *push)
{
	STAILQ_INSERT_TAIL(&p->arrived, push, next);
	p->n++;
}

/* The oldest with that code, or without it; NULL: there is none. */
static struct push *oldest(const struct pushes *p, struct span code, bool with)
{
	struct push *push;

	STAILQ_FOREACH(push, &p->arrived, next)
		if (span_equal(push->line.parsed.code, code) == with)
			break;
	return push;
}

/* A LOST is never dropped, and an EVENT is worth least: whoever missed one can ask LIST. */
bool pushes_make_room(struct pushes *p)
{
	struct push *push;

	if (p->n < PUSHES_MAX)
		return true;
	push = oldest(p, SPAN("EVENT"), true);
	p->missed |= push != NULL;
	if (!push)
		push = oldest(p, SPAN("LOST"), false);
	if (!push)
		return false;
	STAILQ_REMOVE(&p->arrived, push, push, next);
	p->n--;
	push_free(push);
	return true;
}

const struct redlock_line *pushes_next(struct pushes *p)
{
	free(p->shown);
	p->shown = NULL;
	if (p->missed && !push_new(MISSED, strlen(MISSED), &p->shown)) {
		p->missed = false;
		return &p->shown->line;
	}
	p->shown = STAILQ_FIRST(&p->arrived);
	if (!p->shown)
		return NULL;
	STAILQ_REMOVE_HEAD(&p->arrived, next);
	p->n--;
	return &p->shown->line;
}
