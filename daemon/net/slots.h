/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers for sessions: the lowest free slot in the low 32 bits, a generation that grows with each use of the slot in the high
 * ones, from 1. So numbers are dense, and one that is spent never names a later session. 16 bytes and a bit per slot.
 */
#ifndef NET_SLOTS_H
#define NET_SLOTS_H

#include <stddef.h>
#include <stdint.h>

struct conn;
struct slot;

struct slots {
	struct slot *slot;
	uint64_t *used; /* a bit per slot */
	size_t cap;     /* slots, a multiple of 64 */
	size_t lowest;  /* no slot below is free */
	unsigned live;
};

void slots_init(struct slots *s);
void slots_release(struct slots *s); /* the connections are the caller's */

uint64_t slots_take(struct slots *s, struct conn *conn);
struct conn *slots_find(const struct slots *s, uint64_t session); /* NULL: gone, or never there */
void slots_give(struct slots *s, uint64_t session);
struct conn *slots_any(const struct slots *s); /* some connection; NULL when there is none */

#endif
