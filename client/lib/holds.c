/* SPDX-License-Identifier: BSD-2-Clause */
/* See holds.h. */
#include "client/lib/holds.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

void holds_init(struct holds *holds)
{
	*holds = (struct holds){.by_name = NULL};
	LIST_INIT(&holds->all);
}

void holds_release(struct holds *holds)
{
	struct hold *h;

	while ((h = LIST_FIRST(&holds->all)))
		holds_forget(holds, h);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct hold *)a)->name, ((const struct hold *)b)->name);
}

/* A name with a NUL is none of ours. */
struct hold *holds_find(const struct holds *holds, struct span name)
{
	struct hold key, *const *found;

	if (!name.p || name.n > NAME_MAX_BYTES || memchr(name.p, '\0', name.n))
		return NULL;
	memcpy(key.name, name.p, name.n);
	key.name[name.n] = '\0';
	found = tfind(&key, &holds->by_name, by_name);
	return found ? *found : NULL;
}

static int holds_add(struct holds *holds, const char *name)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	memcpy(h->name, name, strlen(name) + 1);
	if (!tsearch(h, &holds->by_name, by_name)) {
		free(h);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&holds->all, h, next);
	return 0;
}

int holds_reserve(struct holds *holds, const char *name)
{
	return holds_find(holds, span_of(name)) ? 0 : holds_add(holds, name);
}

void holds_forget(struct holds *holds, struct hold *h)
{
	tdelete(h, &holds->by_name, by_name);
	LIST_REMOVE(h, next);
	free(h);
}

void holds_end_lockall(struct holds *holds)
{
	struct hold *h, *next;

	for (h = LIST_FIRST(&holds->all); h; h = next) {
		next = LIST_NEXT(h, next);
		if (h->in_bundle && h->state == HOLD_ASKED && !h->unsettled)
			holds_forget(holds, h);
		else
			h->in_bundle = false;
	}
}
