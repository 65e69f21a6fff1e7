/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The items of a hash or a sorted set. A hash keeps its fields in the order of insertion, as a small one does in Redis; a sorted set is ordered by score, then
 * by name. Search is linear: the lists are short.
 */
#ifndef SIM_ITEMS_H
#define SIM_ITEMS_H

#include "proto/span.h"

struct item {
	struct span name, value; /* owned; a member of a sorted set has no value */
	double score;
};

struct items {
	struct item *item;
	size_t count, cap;
};

void items_release(struct items *s);
void items_copy(struct items *to, const struct items *from); /* `to` is empty */

size_t items_find(const struct items *s, struct span name); /* returns its index, or count */
void items_remove(struct items *s, size_t from, size_t n);
bool items_put_field(struct items *s, struct span name, struct span value); /* returns true if it is new */
void items_put_member(struct items *s, struct span name, double score);     /* moves a member that is there */

#endif
