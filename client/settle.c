/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon was started anew, and RESUME left locks undecided: the stores have not said yet whether the session holds them. CHECK of each tells what
 * is lost; what is still undecided then is neither lost nor given up, and is believed for as long as before. A LOCK or an UNLOCK in flight
 * waits until its lock is decided: repeated before, it would count twice, or not at all. So it does where RESUME had too many rows to tell all.
 */
#include "client/conn.h"

#include <stdio.h>

#define SETTLE_US 100000 /* from one CHECK of an undecided lock to the next */

static bool ask_is_unsettled(const struct redlock *c)
{
	const struct hold *h = c->in_flight ? book_find(&c->book, c->ask.name) : NULL;

	return c->in_flight && (c->open > 0 || c->more > 0) && !(h ? h->row.told : c->ask.row.told) && !c->ask.settled &&
	       (c->ask.sent || (h && h->given_up)) && (c->ask.kind == ASK_LOCK || c->ask.kind == ASK_UNLOCK);
}

/* What CHECK of its name told about the request in flight. False: it is not decided yet. */
static bool ask_settle(struct redlock *c, const struct reply_line *line)
{
	struct hold *h = book_find(&c->book, c->ask.name);
	bool once = h && h->state == HOLD_KEPT && h->count <= 1;

	if (line->kind == LINE_OK || book_code_is_lost(line)) {
		c->ask.settled = true;
	} else if (c->ask.kind == ASK_UNLOCK && once) {
		/* It is held, so this UNLOCK was not done. Of a lock that is held more often nobody knows whether it was counted. */
		h->row = (struct row){.told = true, .fence = h->fence};
	}
	return c->ask.settled || (h && h->row.told);
}

/* Its answer is believed from a moment before it is sent. */
static int settle_check(struct redlock *c, const char *name)
{
	char line[4 * NAME_MAX_BYTES + 32];
	size_t n = (size_t)snprintf(line, sizeof(line), "CHECK ");

	n += quote(span_of(name), line + n, sizeof(line) - n);
	memcpy(c->settled, name, strlen(name) + 1);
	c->resumed_us = redlock_now_us();
	return conn_say(c, line, n);
}

int settle(struct redlock *c)
{
	const struct hold *h = book_undecided(c);

	c->link = LINK_SETTLING;
	c->again_us = 0;
	c->due_us = conn_until(RECONNECT_MS);
	if (h)
		return settle_check(c, h->name);
	return ask_is_unsettled(c) ? settle_check(c, c->ask.name) : tidy(c);
}

int settle_hear(struct redlock *c, const struct reply_line *line)
{
	int r = book_settle(c, c->settled, line);

	if (r)
		return r;
	if (!ask_is_unsettled(c) || strcmp(c->settled, c->ask.name) != 0 || ask_settle(c, line))
		return settle(c);
	c->again_us = redlock_now_us() + SETTLE_US;
	return 0;
}
