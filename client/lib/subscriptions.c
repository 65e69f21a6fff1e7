/* SPDX-License-Identifier: BSD-2-Clause */
/* See subscriptions.h. */
#include "client/lib/subscriptions.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#define CODE_MOST 32 /* bytes of a code word */

void subscriptions_init(struct subscriptions *w)
{
	STAILQ_INIT(&w->all);
	w->gap = false;
}

static void subscriptions_drop(struct subscriptions *w, struct subscription *watch)
{
	STAILQ_REMOVE(&w->all, watch, subscription, next);
	free(watch);
}

void subscriptions_release(struct subscriptions *w)
{
	while (!STAILQ_EMPTY(&w->all))
		subscriptions_drop(w, STAILQ_FIRST(&w->all));
}

struct subscription *subscription_new(struct span line, bool events)
{
	struct subscription *watch = calloc(1, sizeof(*watch) + line.n);

	if (!watch)
		return NULL;
	watch->events = events;
	watch->n = line.n;
	memcpy(watch->line, line.p, line.n);
	return watch;
}

void subscriptions_forget(struct subscriptions *w, struct span line)
{
	struct subscription *watch;

	STAILQ_FOREACH(watch, &w->all, next)
		if (span_equal((struct span){watch->line, watch->n}, line))
			break;
	if (watch)
		subscriptions_drop(w, watch);
}

void subscriptions_add(struct subscriptions *w, struct subscription *watch)
{
	subscriptions_forget(w, (struct span){watch->line, watch->n});
	STAILQ_INSERT_TAIL(&w->all, watch, next);
}

void subscriptions_end(struct subscriptions *w)
{
	struct subscription *watch;

	STAILQ_FOREACH(watch, &w->all, next) {
		w->gap |= watch->stands && watch->events;
		watch->stands = false;
	}
}

struct subscription *subscriptions_next(const struct subscriptions *w)
{
	struct subscription *watch;

	STAILQ_FOREACH(watch, &w->all, next)
		if (!watch->stands)
			break;
	return watch;
}

bool subscriptions_gap(struct subscriptions *w)
{
	bool gap = w->gap;
	const struct subscription *watch;

	w->gap = false;
	STAILQ_FOREACH(watch, &w->all, next)
		if (watch->events)
			return gap;
	return false;
}

/* The prefix is quoted already. */
size_t subscriptions_refused(struct subscriptions *w, struct span code, char out[WATCH_PUSH_BYTES])
{
	struct subscription *watch = subscriptions_next(w);
	const char *prefix = memchr(watch->line, ' ', watch->n);
	int code_n = (int)MIN(code.n, CODE_MOST);
	int n = prefix ? (int)(watch->line + watch->n - ++prefix) : 0;

	n = snprintf(out, WATCH_PUSH_BYTES, "! %s%s%.*s code=%.*s", watch->events ? "UNWATCHED" : "UNSUBSCRIBED", prefix ? " prefix=" : "", n,
		     prefix ? prefix : "", code_n, code.p);
	subscriptions_drop(w, watch);
	return MIN((size_t)n, (size_t)WATCH_PUSH_BYTES - 1);
}
