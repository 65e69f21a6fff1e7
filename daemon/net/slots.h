/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Session numbers: the lowest free slot in the low 32 bits, and in the high ones a generation from 1 that grows with each use of the slot. So slots are dense,
 * and an old number never names a later session. 16 bytes and a bit per slot. Slots below `first` are for sessions that are no connections of net. The next
 * `reserved` slots are not given out. They only hold sessions that an earlier build has put there.
 */
#ifndef NET_SLOTS_H
#define NET_SLOTS_H

#include <stdbool.h>
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
	uint32_t first, reserved; /* the number of the first slot; that many slots from there on are not given out */
};

void slots_init(struct slots *s, uint32_t first, uint32_t reserved); /* reserved: a multiple of 64 */
void slots_release(struct slots *s); /* the caller owns the connections */

uint64_t slots_take(struct slots *s, struct conn *conn);
struct conn *slots_find(const struct slots *s, uint64_t session); /* NULL: no session of this number */
void slots_give(struct slots *s, uint64_t session);
bool slots_has(const struct slots *s, uint32_t slot); /* some session has the slot of this number */
/* The session keeps its number from the previous process. False: the slot is in use, or no slot has that number. */
bool slots_put(struct slots *s, uint64_t session, struct conn *conn);

struct conn *slots_any(const struct slots *s); /* any connection; NULL: there is none */
struct conn *slots_next(const struct slots *s, size_t *at); /* the first one in use from *at on, which it moves; NULL: none */

#endif
