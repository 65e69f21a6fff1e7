/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/base/roll.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"

#include <string.h>

void roll_init(struct roll *r, const uint64_t key[2], size_t most)
{
	*r = (struct roll){.key = {key[0], key[1]}, .most = most};
	TAILQ_INIT(&r->by_age);
}

static int name_compare(const struct roll_item *item, const char *name, size_t n)
{
	size_t common = item->n < n ? item->n : n;
	int order = common > 0 ? memcmp(item->text, name, common) : 0;

	return order ? order : (item->n > n) - (item->n < n);
}

/* Finds the links to the first item that is not before this name, one for each height. Returns that item. */
static struct roll_item *roll_seek(struct roll *r, const char *name, size_t n, struct roll_item **ret_link[ROLL_HEIGHT])
{
	struct roll_item **links = r->first;

	for (int h = ROLL_HEIGHT - 1; h >= 0; h--) {
		while (links[h] && name_compare(links[h], name, n) < 0)
			links = links[h]->next;
		ret_link[h] = &links[h];
	}
	return links[0];
}

struct roll_item *roll_from(const struct roll *r, const char *name, size_t n)
{
	struct roll_item *const *links = r->first;

	for (int h = ROLL_HEIGHT - 1; h >= 0; h--)
		while (links[h] && name_compare(links[h], name, n) < 0)
			links = links[h]->next;
	return links[0];
}

/* Removes it from all lists. The caller owns it then. */
static void roll_unlink(struct roll *r, struct roll_item *item)
{
	struct roll_item **link[ROLL_HEIGHT];

	roll_seek(r, item->text, item->n, link);
	for (unsigned h = 0; h < item->height; h++)
		*link[h] = item->next[h];
	TAILQ_REMOVE(&r->by_age, item, by_age);
	r->count--;
}

void roll_release(struct roll *r)
{
	struct roll_item *item;

	while ((item = TAILQ_FIRST(&r->by_age))) {
		TAILQ_REMOVE(&r->by_age, item, by_age);
		mem_free(item);
	}
}

/* One in four items has the next height, too. */
static uint8_t height_of(const struct roll *r, const char *name, size_t n)
{
	uint64_t bits = siphash(r->key, name, n);
	uint8_t height = 1;

	for (; height < ROLL_HEIGHT && (bits & 3) == 0; bits >>= 2)
		height++;
	return height;
}

/* An item of that height with room for the name: the removed one, if it fits. */
static struct roll_item *item_new(struct roll_item *old, uint8_t height, const char *name, size_t n)
{
	size_t cap = (n + 31) / 32 * 32, links = height * sizeof(struct roll_item *);
	struct roll_item *item = old;

	if (!old || old->height != height || old->cap < n) {
		mem_free(old);
		item = mem_alloc(sizeof(*item) + links + cap);
		item->height = height;
		item->cap = (uint16_t)cap;
		item->text = (char *)item + sizeof(*item) + links;
	}
	item->n = (uint16_t)n;
	if (n > 0)
		memcpy(item->text, name, n);
	return item;
}

static struct roll_item *roll_add(struct roll *r, const char *name, size_t n)
{
	struct roll_item *old = r->count >= r->most ? TAILQ_FIRST(&r->by_age) : NULL, *item, **link[ROLL_HEIGHT];

	if (old)
		roll_unlink(r, old);
	item = item_new(old, height_of(r, name, n), name, n);
	roll_seek(r, name, n, link);
	for (unsigned h = 0; h < item->height; h++) {
		item->next[h] = *link[h];
		*link[h] = item;
	}
	r->count++;
	return item;
}

void roll_note(struct roll *r, const char *name, size_t n)
{
	struct roll_item *item = roll_from(r, name, n);

	if (item && name_compare(item, name, n) == 0)
		TAILQ_REMOVE(&r->by_age, item, by_age);
	else
		item = roll_add(r, name, n);
	TAILQ_INSERT_TAIL(&r->by_age, item, by_age);
}
