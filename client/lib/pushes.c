/* SPDX-License-Identifier: BSD-2-Clause */
/* See pushes.h. */
#include "client/lib/pushes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

void pushes_release(struct pushes *p)
{
	p->missed = false;
	while (pushes_next(p))
		;
	buffer_release(&p->shown.room);
}

int pushes_add(struct pushes *p, struct redlock_line *line)
{
	struct push *push = malloc(sizeof(*push));

	if (!push)
		return -ENOMEM;
	push->line = *line;
	*line = (struct redlock_line){.room = {NULL, 0}};
	STAILQ_INSERT_TAIL(&p->arrived, push, next);
	p->n++;
	return 0;
}

/* Returns the oldest push with that code, or with any other; NULL: there is none. */
static struct push *oldest(const struct pushes *p, struct span code, bool with)
{
	struct push *push;

	STAILQ_FOREACH(push, &p->arrived, next)
		if (span_equal(push->line.parsed.code, code) == with)
			break;
	return push;
}

/* A LOST is never dropped. An EVENT is dropped first, because LIST can replace it. */
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
	buffer_release(&push->line.room);
	free(push);
	return true;
}

const struct redlock_line *pushes_next(struct pushes *p)
{
	struct push *push = STAILQ_FIRST(&p->arrived);

	if (p->missed && !line_take(&p->shown, MISSED, strlen(MISSED))) {
		p->missed = false;
		return &p->shown;
	}
	if (!push)
		return NULL;
	STAILQ_REMOVE_HEAD(&p->arrived, next);
	p->n--;
	buffer_release(&p->shown.room);
	p->shown = push->line;
	free(push);
	return &p->shown;
}

/* --- subscriptions --- */

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

void subscriptions_forget(struct subscriptions *w, const char *line)
{
	struct subscription *watch;

	STAILQ_FOREACH(watch, &w->all, next)
		if (!strcmp(watch->line, line))
			break;
	if (watch)
		subscriptions_drop(w, watch);
}

int subscriptions_add(struct subscriptions *w, const char *line, bool events, bool subscribed)
{
	struct subscription *watch = calloc(1, sizeof(*watch) + strlen(line) + 1);

	if (!watch)
		return -ENOMEM;
	subscriptions_forget(w, line);
	watch->events = events;
	watch->subscribed = subscribed;
	strcpy(watch->line, line);
	w->gap |= events && !subscribed;
	STAILQ_INSERT_TAIL(&w->all, watch, next);
	return 0;
}

void subscriptions_end(struct subscriptions *w)
{
	struct subscription *watch;

	STAILQ_FOREACH(watch, &w->all, next) {
		w->gap |= watch->subscribed && watch->events;
		watch->subscribed = false;
	}
}

struct subscription *subscriptions_next(const struct subscriptions *w)
{
	struct subscription *watch;

	STAILQ_FOREACH(watch, &w->all, next)
		if (!watch->subscribed)
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

/* The prefix in the line is quoted already. */
void subscriptions_refused(struct subscriptions *w, struct span code, struct draft *d)
{
	struct subscription *watch = subscriptions_next(w);
	const char *prefix = strchr(watch->line, ' ');

	draft_verb(d, watch->events ? "! UNWATCHED" : "! UNSUBSCRIBED");
	draft_text(d, prefix ? " prefix=" : "");
	draft_text(d, prefix ? prefix + 1 : "");
	draft_bytes(d, " code=", (struct redlock_bytes){code.p, code.n});
	subscriptions_drop(w, watch);
}
