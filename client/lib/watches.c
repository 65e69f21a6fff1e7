/* SPDX-License-Identifier: BSD-2-Clause */
/* See watches.h. */
#include "client/lib/watches.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#define CODE_MOST 32 /* bytes of a code word */

void watches_init(struct watches *w)
{
	STAILQ_INIT(&w->all);
	w->gap = false;
}

static void watches_drop(struct watches *w, struct watch *watch)
{
	STAILQ_REMOVE(&w->all, watch, watch, next);
	free(watch);
}

void watches_release(struct watches *w)
{
	while (!STAILQ_EMPTY(&w->all))
		watches_drop(w, STAILQ_FIRST(&w->all));
}

struct watch *watch_new(struct span line, bool events)
{
	struct watch *watch = calloc(1, sizeof(*watch) + line.n);

	if (!watch)
		return NULL;
	watch->events = events;
	watch->n = line.n;
	memcpy(watch->line, line.p, line.n);
	return watch;
}

void watches_forget(struct watches *w, struct span line)
{
	struct watch *watch;

	STAILQ_FOREACH(watch, &w->all, next)
		if (span_equal((struct span){watch->line, watch->n}, line))
			break;
	if (watch)
		watches_drop(w, watch);
}

void watches_add(struct watches *w, struct watch *watch)
{
	watches_forget(w, (struct span){watch->line, watch->n});
	STAILQ_INSERT_TAIL(&w->all, watch, next);
}

void watches_end(struct watches *w)
{
	struct watch *watch;

	STAILQ_FOREACH(watch, &w->all, next) {
		w->gap |= watch->stands && watch->events;
		watch->stands = false;
	}
}

struct watch *watches_next(const struct watches *w)
{
	struct watch *watch;

	STAILQ_FOREACH(watch, &w->all, next)
		if (!watch->stands)
			break;
	return watch;
}

bool watches_gap(struct watches *w)
{
	bool gap = w->gap;
	const struct watch *watch;

	w->gap = false;
	STAILQ_FOREACH(watch, &w->all, next)
		if (watch->events)
			return gap;
	return false;
}

/* The prefix is quoted already. */
size_t watches_refused(struct watches *w, struct span code, char out[WATCH_PUSH_BYTES])
{
	struct watch *watch = watches_next(w);
	const char *prefix = memchr(watch->line, ' ', watch->n);
	int code_n = (int)MIN(code.n, CODE_MOST);
	int n = prefix ? (int)(watch->line + watch->n - ++prefix) : 0;

	n = snprintf(out, WATCH_PUSH_BYTES, "! %s%s%.*s code=%.*s", watch->events ? "UNWATCHED" : "UNSUBSCRIBED", prefix ? " prefix=" : "", n,
		     prefix ? prefix : "", code_n, code.p);
	watches_drop(w, watch);
	return MIN((size_t)n, (size_t)WATCH_PUSH_BYTES - 1);
}
