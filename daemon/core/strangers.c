/* SPDX-License-Identifier: BSD-2-Clause */
/* See strangers.h. */
#include "daemon/core/strangers.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"

struct strangers *strangers_here(struct commander *x)
{
	struct strangers *t = x->strangers;

	if (t)
		return t;
	t = x->strangers = mem_alloc(sizeof(*t));
	t->timer.kind = TIMER_STRANGERS;
	t->key = x->engine->table.map.key;
	TAILQ_INIT(&t->table);
	TAILQ_INIT(&t->words);
	TAILQ_INIT(&t->held);
	TAILQ_INIT(&t->due);
	return t;
}

struct stranger *stranger_find(const struct strangers *t, struct span name)
{
	uint64_t hash = siphash(t->key, name.p, name.n);
	struct stranger *g;

	TAILQ_FOREACH(g, &t->table, in_table) {
		if (g->hash == hash && span_equal((struct span){g->name, g->name_n}, name))
			return g;
	}
	return NULL;
}

static void stranger_forget_card(struct stranger *g)
{
	mem_free(g->message);
	g->message = NULL;
}

static void stranger_free(struct strangers *t, struct stranger *g)
{
	TAILQ_REMOVE(&t->table, g, in_table);
	t->count--;
	stranger_forget_card(g);
	mem_free(g);
}

void strangers_clear(struct strangers *t)
{
	while (!TAILQ_EMPTY(&t->table))
		stranger_free(t, TAILQ_FIRST(&t->table));
}

static struct stranger *stranger_new(struct strangers *t, struct span name)
{
	struct stranger *g = mem_alloc(sizeof(*g) + name.n);

	if (t->count == STRANGERS_MOST)
		stranger_free(t, TAILQ_LAST(&t->table, stranger_table));
	g->hash = siphash(t->key, name.p, name.n);
	g->asked_at = g->told_at = INSTANT_PAST;
	g->name_n = name.n;
	memcpy(g->name, name.p, name.n);
	t->count++;
	return g;
}

struct stranger *stranger_use(struct strangers *t, struct span name)
{
	struct stranger *g = stranger_find(t, name);

	if (g)
		TAILQ_REMOVE(&t->table, g, in_table);
	else
		g = stranger_new(t, name);
	TAILQ_INSERT_HEAD(&t->table, g, in_table);
	return g;
}

bool stranger_is(const struct stranger *g, const struct elsewhere *elsewhere)
{
	return g->number == elsewhere->number && strcmp(g->daemon, elsewhere->daemon) == 0;
}

void stranger_become(struct stranger *g, const struct elsewhere *elsewhere)
{
	if (strcmp(g->daemon, elsewhere->daemon) != 0)
		g->silent = false;
	core_keep(g->daemon, sizeof(g->daemon), span_of(elsewhere->daemon));
	g->number = elsewhere->number;
	g->open = false;
	stranger_forget_card(g);
}

/* Only of whom it was asked, and about what: the answer to an earlier question may be late, and anybody may send one. */
bool stranger_keep(struct strangers *t, struct span message, struct instant now, struct stranger **ret_stranger)
{
	struct stranger *g;
	struct card c;

	if (!card_read(message, &c))
		return false;
	g = stranger_find(t, c.name);
	if (!g || !g->open || g->number != c.number || !span_equal(span_of(g->daemon), c.daemon) || instant_diff(now, g->asked_at) > STRANGER_KEPT)
		return false;
	stranger_forget_card(g);
	g->message = mem_copy(message.p, message.n);
	(void)card_read((struct span){g->message, message.n}, &g->card);
	g->told_at = now;
	g->open = g->silent = false;
	*ret_stranger = g;
	return true;
}

const struct card *stranger_card(const struct commander *x, struct span name, const struct elsewhere *elsewhere, int64_t *ret_us)
{
	const struct stranger *g = x->strangers && elsewhere->number > 0 ? stranger_find(x->strangers, name) : NULL;

	if (!g || !g->message || !stranger_is(g, elsewhere) || instant_diff(x->core->now, g->told_at) > STRANGER_KEPT)
		return NULL;
	*ret_us = g->card.held_ms * MSEC + instant_diff(x->core->now, g->told_at);
	return &g->card;
}

/* --- fields ---------------------------------------------------------------------------------------------------------- */

void reply_stranger(struct reply *r, const struct card *c)
{
	if (c->label.n > 0)
		reply_text(r, "name", c->label);
	if (c->peer.n > 0)
		reply_text(r, "peer", c->peer);
	if (c->pid >= 0) {
		reply_int(r, "pid", c->pid);
		reply_int(r, "uid", c->uid);
	}
}

void reply_stranger_texts(struct reply *r, const struct card *c)
{
	if (c->owner.n > 0)
		reply_text(r, "owner", c->owner);
	if (c->note.n > 0)
		reply_text(r, "note", c->note);
}

void reply_stranger_who(struct reply *r, const struct card *c)
{
	char who[CARD_WHO_MAX];
	size_t n = card_who(c, who);

	if (n > 0)
		reply_text(r, "who", (struct span){who, n});
}
