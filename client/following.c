/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that ask for pushes (redlock.h): WATCH, SUBSCRIBE and their ends. */
#include "client/await.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct span draft_line(const struct draft *d)
{
	return (struct span){d->line, d->n};
}

/* The request is repeated over the next connection, like one that only asks. A watch is the session's once the daemon has said so. */
static int follow(struct redlock *c, const struct draft *d, bool events)
{
	struct watch *watch = d->full ? NULL : watch_new(draft_line(d), events);
	int r = d->full || watch ? await_draft(c, d, PENDING_READ, 0, NULL) : conn_break(c, -ENOMEM, "out of memory");

	if (r) {
		free(watch);
		return r;
	}
	/* The connection may have ended right behind the answer. */
	watch->stands = c->link != LINK_DOWN;
	c->watches.gap |= events && !watch->stands;
	watches_add(&c->watches, watch);
	return 0;
}

/* Refused as unknown, it is no more, either. */
static int unfollow(struct redlock *c, const struct draft *d, struct span followed)
{
	int r = await_draft(c, d, PENDING_READ, 0, NULL);

	if (!r || (r == REDLOCK_REFUSED && !strcmp(c->code, "NOTFOUND")))
		watches_forget(&c->watches, followed);
	return r;
}

static void draft_watch(struct draft *d, const char *verb, const char *prefix)
{
	draft_verb(d, verb);
	if (prefix && *prefix)
		draft_quoted(d, " ", prefix);
}

int redlock_watch(struct redlock *c, const char *prefix)
{
	struct draft d;

	draft_watch(&d, "WATCH", prefix);
	return follow(c, &d, true);
}

int redlock_unwatch(struct redlock *c, const char *prefix)
{
	struct draft d, watch;

	draft_watch(&d, "UNWATCH", prefix);
	draft_watch(&watch, "WATCH", prefix);
	return unfollow(c, &d, draft_line(&watch));
}

int redlock_subscribe(struct redlock *c)
{
	struct draft d;

	draft_verb(&d, "SUBSCRIBE");
	return follow(c, &d, false);
}

int redlock_unsubscribe(struct redlock *c)
{
	struct draft d;

	draft_verb(&d, "UNSUBSCRIBE");
	return unfollow(c, &d, SPAN("SUBSCRIBE"));
}
