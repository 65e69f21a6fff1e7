/* SPDX-License-Identifier: BSD-2-Clause */
/* An array that is kept in order. The fields of a hash must never change their order: replies are compared byte by byte. */
#include "tests/sim/redis/items.h"
#include "daemon/base/mem.h"

#include <stdint.h>
#include <stdlib.h>

static struct span text_copy(struct span text)
{
	return (struct span){mem_copy(text.p, text.n), text.n};
}

static void text_free(struct span text)
{
	free((void *)(uintptr_t)text.p);
}

void items_release(struct items *s)
{
	items_remove(s, 0, s->count);
	free(s->item);
	*s = (struct items){0};
}

void items_copy(struct items *to, const struct items *from)
{
	size_t i;

	*to = (struct items){.item = mem_grow(NULL, from->count, sizeof(struct item)), .count = from->count, .cap = from->count};
	for (i = 0; i < from->count; i++) {
		to->item[i].name = text_copy(from->item[i].name);
		to->item[i].value = text_copy(from->item[i].value);
		to->item[i].score = from->item[i].score;
	}
}

size_t items_find(const struct items *s, struct span name)
{
	size_t i = 0;

	while (i < s->count && !span_equal(s->item[i].name, name))
		i++;
	return i;
}

void items_remove(struct items *s, size_t from, size_t n)
{
	size_t i;

	for (i = from; i < from + n; i++) {
		text_free(s->item[i].name);
		text_free(s->item[i].value);
	}
	if (n)
		memmove(s->item + from, s->item + from + n, (s->count - from - n) * sizeof(*s->item));
	s->count -= n;
}

static void items_insert(struct items *s, size_t at, struct item item)
{
	if (s->count == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 4;
		s->item = mem_grow(s->item, s->cap, sizeof(*s->item));
	}
	memmove(s->item + at + 1, s->item + at, (s->count - at) * sizeof(*s->item));
	s->item[at] = item;
	s->count++;
}

bool items_put_field(struct items *s, struct span name, struct span value)
{
	size_t i = items_find(s, name);
	struct span copy = text_copy(value);

	if (i == s->count) {
		items_insert(s, i, (struct item){.name = text_copy(name), .value = copy});
		return true;
	}
	text_free(s->item[i].value);
	s->item[i].value = copy;
	return false;
}

static bool member_precedes(const struct item *x, struct span name, double score)
{
	size_t n = x->name.n < name.n ? x->name.n : name.n;
	int order = n ? memcmp(x->name.p, name.p, n) : 0;

	if (x->score < score || x->score > score)
		return x->score < score;
	return order ? order < 0 : x->name.n < name.n;
}

void items_put_member(struct items *s, struct span name, double score)
{
	struct item item = {.name = text_copy(name), .value = text_copy(SPAN("")), .score = score};
	size_t i = items_find(s, name);

	if (i < s->count)
		items_remove(s, i, 1);
	for (i = 0; i < s->count && member_precedes(&s->item[i], name, score);)
		i++;
	items_insert(s, i, item);
}
