/* SPDX-License-Identifier: BSD-2-Clause */
/* See remote_holders.h. */
#include "daemon/core/reply/remote_holders.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"

struct remote_holders *remote_holders_here(struct request_context *x)
{
	struct remote_holders *t = x->remote_holders;

	if (t)
		return t;
	t = x->remote_holders = mem_alloc(sizeof(*t));
	t->timer.kind = TIMER_ASK_DAEMON;
	t->key = x->engine->table.map.key;
	TAILQ_INIT(&t->table);
	TAILQ_INIT(&t->messages);
	TAILQ_INIT(&t->held);
	TAILQ_INIT(&t->due);
	return t;
}

struct remote_holder *remote_holder_find(const struct remote_holders *t, struct span name)
{
	uint64_t hash = siphash(t->key, name.p, name.n);
	struct remote_holder *h;

	TAILQ_FOREACH(h, &t->table, in_table) {
		if (h->hash == hash && span_equal((struct span){h->name, h->name_n}, name))
			return h;
	}
	return NULL;
}

static void forget_card(struct remote_holder *h)
{
	mem_free(h->message);
	h->message = NULL;
}

static void remote_holder_free(struct remote_holders *t, struct remote_holder *h)
{
	TAILQ_REMOVE(&t->table, h, in_table);
	t->count--;
	forget_card(h);
	mem_free(h);
}

void remote_holders_clear(struct remote_holders *t)
{
	while (!TAILQ_EMPTY(&t->table))
		remote_holder_free(t, TAILQ_FIRST(&t->table));
}

static struct remote_holder *remote_holder_new(struct remote_holders *t, struct span name)
{
	struct remote_holder *h = mem_alloc(sizeof(*h) + name.n);

	if (t->count == REMOTE_HOLDERS_MOST)
		remote_holder_free(t, TAILQ_LAST(&t->table, remote_holder_list));
	h->hash = siphash(t->key, name.p, name.n);
	h->asked_at = h->told_at = INSTANT_PAST;
	h->name_n = name.n;
	memcpy(h->name, name.p, name.n);
	t->count++;
	return h;
}

struct remote_holder *remote_holder_use(struct remote_holders *t, struct span name)
{
	struct remote_holder *h = remote_holder_find(t, name);

	if (h)
		TAILQ_REMOVE(&t->table, h, in_table);
	else
		h = remote_holder_new(t, name);
	TAILQ_INSERT_HEAD(&t->table, h, in_table);
	return h;
}

bool remote_holder_is(const struct remote_holder *h, const struct elsewhere *elsewhere)
{
	return h->number == elsewhere->number && strcmp(h->daemon, elsewhere->daemon) == 0;
}

void remote_holder_become(struct remote_holder *h, const struct elsewhere *elsewhere)
{
	core_keep(h->daemon, sizeof(h->daemon), span_of(elsewhere->daemon));
	h->number = elsewhere->number;
	h->open = false;
	forget_card(h);
}

/* Only of whom it was asked, and about what: the answer to an earlier question may be late, and anybody may send one. */
bool remote_holder_keep_card(struct remote_holders *t, struct span message, struct instant now, struct remote_holder **ret_holder)
{
	struct remote_holder *h;
	struct holder_text c;

	if (!holder_text_read(message, &c))
		return false;
	h = remote_holder_find(t, c.name);
	if (!h || !h->open || h->number != c.number || !span_equal(span_of(h->daemon), c.daemon) || instant_diff(now, h->asked_at) > CARD_KEPT_US)
		return false;
	forget_card(h);
	h->message = mem_copy(message.p, message.n);
	(void)holder_text_read((struct span){h->message, message.n}, &h->card);
	h->told_at = now;
	h->open = false;
	*ret_holder = h;
	return true;
}

const struct holder_text *remote_holder_card(const struct request_context *x, struct span name, const struct elsewhere *elsewhere, int64_t *ret_us)
{
	const struct remote_holder *h = x->remote_holders && elsewhere->number > 0 ? remote_holder_find(x->remote_holders, name) : NULL;

	if (!h || !h->message || !remote_holder_is(h, elsewhere) || instant_diff(x->core->now, h->told_at) > CARD_KEPT_US)
		return NULL;
	*ret_us = h->card.held_ms * MSEC + instant_diff(x->core->now, h->told_at);
	return &h->card;
}

/* --- fields ---------------------------------------------------------------------------------------------------------- */

void reply_remote_client(struct reply *r, const struct holder_text *c)
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

void reply_remote_texts(struct reply *r, const struct holder_text *c)
{
	if (c->owner.n > 0)
		reply_text(r, "owner", c->owner);
	reply_remark(r, c->remark);
}

void reply_remote_who(struct reply *r, const struct holder_text *c)
{
	char who[CARD_WHO_MAX];
	size_t n = holder_text_who(c, who);

	if (n > 0)
		reply_text(r, "who", (struct span){who, n});
}
