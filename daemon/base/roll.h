/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded set of names, sorted by their bytes, and by the time at which each was last noted. When it is full, a new name replaces the oldest. Noting and
 * finding take the logarithm of their number (a skip list; a hash of the name determines the height of an item).
 */
#ifndef BASE_ROLL_H
#define BASE_ROLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define ROLL_HEIGHT 9

struct roll_item {
	TAILQ_ENTRY(roll_item) by_age;
	uint8_t height;
	uint16_t n, cap;
	char *text;                /* after the links */
	struct roll_item *next[];  /* the next of at least that height */
};
TAILQ_HEAD(roll_items, roll_item);

struct roll {
	uint64_t key[2];
	struct roll_items by_age; /* the oldest comes first */
	struct roll_item *first[ROLL_HEIGHT];
	size_t count, most;
};

void roll_init(struct roll *r, const uint64_t key[2], size_t most);
void roll_release(struct roll *r);

/* Makes it the newest. A name has at most 65504 bytes. */
void roll_note(struct roll *r, const char *name, size_t n);

/* The first name that is not before this one; NULL: none. The next one is roll_next(). */
struct roll_item *roll_from(const struct roll *r, const char *name, size_t n);

static inline struct roll_item *roll_next(const struct roll_item *item)
{
	return item->next[0];
}

#endif
