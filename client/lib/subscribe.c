/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that ask for pushes (redlock.h): WATCH, SUBSCRIBE and their ends. */
#include "client/lib/await.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct subscription *watch_of_draft(const struct draft *d, bool events)
{
	return d->error ? NULL : subscription_new((struct span){d->line.p, d->n}, events);
}

/* The request is repeated over the next connection, like one that only asks. A watch is the session's once the daemon has said so. */
static int follow(struct redlock *c, bool events)
{
	struct subscription *watch = watch_of_draft(&c->draft, events);
	int r = c->draft.error || watch ? await_draft(c, PENDING_READ, 0, NULL) : conn_break(c, -ENOMEM, "out of memory");

	if (r) {
		free(watch);
		return r;
	}
	/* The connection may have ended right behind the answer. */
	watch->stands = c->link != LINK_DOWN;
	c->watches.gap |= events && !watch->stands;
	subscriptions_add(&c->watches, watch);
	return 0;
}

/* Refused as unknown, it is gone as well. */
static int unfollow(struct redlock *c, struct span followed)
{
	int r = await_draft(c, PENDING_READ, 0, NULL);

	if (!r || (r == REDLOCK_REFUSED && !strcmp(c->code, "NOTFOUND")))
		subscriptions_forget(&c->watches, followed);
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
	draft_watch(&c->draft, "WATCH", prefix);
	return follow(c, true);
}

int redlock_unwatch(struct redlock *c, const char *prefix)
{
	struct subscription *watch;
	int r;

	draft_watch(&c->draft, "WATCH", prefix);
	watch = watch_of_draft(&c->draft, true);
	if (!watch && !c->draft.error)
		return conn_break(c, -ENOMEM, "out of memory");
	draft_watch(&c->draft, "UNWATCH", prefix);
	r = unfollow(c, watch ? (struct span){watch->line, watch->n} : SPAN(""));
	free(watch);
	return r;
}

int redlock_subscribe(struct redlock *c)
{
	draft_verb(&c->draft, "SUBSCRIBE");
	return follow(c, false);
}

int redlock_unsubscribe(struct redlock *c)
{
	draft_verb(&c->draft, "UNSUBSCRIBE");
	return unfollow(c, SPAN("SUBSCRIBE"));
}
