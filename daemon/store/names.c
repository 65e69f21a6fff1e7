/* SPDX-License-Identifier: BSD-2-Clause */
/* See names.h. */
#include "daemon/store/names.h"

#include "daemon/base/mem.h"


#define REPLY_MAX 131072 /* bytes of names */
#define OF_USER   100    /* names */

struct names_user {
	SLIST_ENTRY(names_user) next;
	struct roll recent;
	size_t n;
	char name[];
};

static const uint64_t seed[2]; /* nobody attacks a test */

void names_release(struct names *t)
{
	struct names_user *u;

	if (t->all.most > 0)
		roll_release(&t->all);
	while ((u = SLIST_FIRST(&t->users))) {
		SLIST_REMOVE_HEAD(&t->users, next);
		roll_release(&u->recent);
		mem_free(u);
	}
	buf_release(&t->shown);
}

static struct names_user *user_find(struct names *t, struct span name)
{
	struct names_user *u;

	SLIST_FOREACH(u, &t->users, next)
		if (span_equal((struct span){u->name, u->n}, name))
			return u;
	return NULL;
}

static struct names_user *user_find_or_add(struct names *t, struct span name)
{
	struct names_user *u = user_find(t, name);

	if (u)
		return u;
	u = mem_alloc(sizeof(*u) + name.n);
	u->n = name.n;
	if (name.n > 0)
		memcpy(u->name, name.p, name.n);
	roll_init(&u->recent, seed, OF_USER);
	SLIST_INSERT_HEAD(&t->users, u, next);
	return u;
}

/* Takes a number off the front, and the byte behind it. */
static size_t number_take(struct span *text)
{
	size_t n = 0, i = 0;

	for (; i < text->n && text->p[i] >= '0' && text->p[i] <= '9'; i++)
		n = 10 * n + (size_t)(text->p[i] - '0');
	i += i < text->n;
	*text = (struct span){text->p + i, text->n - i};
	return n;
}

static struct span bytes_take(struct span *text, size_t n)
{
	struct span taken = {text->p, n < text->n ? n : text->n};

	*text = (struct span){text->p + taken.n, text->n - taken.n};
	return taken;
}

/* False: no more fit. */
static bool show(struct names *t, const struct roll_item *item, size_t *size)
{
	*size += item->n + 5U;
	if (*size > REPLY_MAX)
		return false;
	buf_printf(&t->shown, "%u:", (unsigned)item->n);
	buf_append(&t->shown, item->text, item->n);
	return true;
}

static void complete(struct names *t, struct span asked)
{
	size_t limit = number_take(&asked), size = 0;
	const struct roll_item *item = roll_from(&t->all, asked.p, asked.n);

	for (; limit > 0 && item && span_starts((struct span){item->text, item->n}, asked) && show(t, item, &size); limit--)
		item = roll_next(item);
}

static void recent(struct names *t, struct span user)
{
	const struct names_user *u = user_find(t, user);
	const struct roll_item *item;
	size_t size = 0;

	if (u)
		TAILQ_FOREACH_REVERSE(item, &u->recent.by_age, roll_items, by_age)
			if (!show(t, item, &size))
				return;
}

/* Returns whether a name was forgotten. */
static bool item_note(struct names *t, struct span item)
{
	char kind = item.p[0];
	struct names_user *u;
	struct roll_item *known;

	bytes_take(&item, 1);
	if (kind == 'n') {
		roll_note(&t->all, item.p, item.n, NULL);
		return false;
	}
	u = user_find_or_add(t, bytes_take(&item, number_take(&item)));
	if (kind == 'u') {
		roll_note(&u->recent, item.p, item.n, NULL);
		return false;
	}
	known = roll_find(&u->recent, item.p, item.n);
	if (known)
		roll_remove(&u->recent, known);
	return known;
}

static void note(struct names *t, struct span items)
{
	unsigned forgotten = 0;

	while (items.n > 0) {
		struct span item = bytes_take(&items, number_take(&items));

		forgotten += item.n > 0 && item_note(t, item);
	}
	buf_printf(&t->shown, "%u", forgotten);
}

void names_call(struct names *t, struct span marker, const struct call *c, struct answer *a)
{
	struct span asked = {c->value.p + 1, c->value.n - 1};

	a->class = ANSWER_EXECUTED;
	a->code = span_equal(marker, c->marker) ? 'T' : 'Q';
	a->found = marker;
	if (a->code == 'Q')
		return;
	if (t->all.most == 0)
		roll_init(&t->all, seed, (size_t)c->range);
	buf_clear(&t->shown);
	if (c->value.p[0] == 'c')
		complete(t, asked);
	else if (c->value.p[0] == 'u')
		recent(t, asked);
	else
		note(t, asked);
	a->found = (struct span){buf_begin(&t->shown), buf_length(&t->shown)};
}
