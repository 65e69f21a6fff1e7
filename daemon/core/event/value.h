/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands at the stores in our name: values of keys, and tickets. Both are kept as the numbers that they are made of. Their texts, which begin with or
 * contain the daemon's id, are written into memory of the effects where a call or a record needs them.
 */
#ifndef CORE_VALUE_H
#define CORE_VALUE_H

#include "daemon/core/event/core.h"

/*
 * "<daemon-id>:<number>:<32 hex>": fresh for every attempt, never used again. The first 12 hex digits tell since when this daemon holds the name, in ms of the
 * stores' clock, the lowest digit first. The stores show them to others, with all that stands in front. The other 80 bits are a secret: nobody who was not
 * told it guesses it within a lease, at whatever rate a store answers. Of a value that nobody holds, which an UNLOCK keep= or a lock-delay left behind, the
 * moment is the end of the hold, and the highest bit of its digits is set.
 */
struct lease_value {
	uint64_t number; /* 0: there was none yet */
	uint64_t secret[2];
	unsigned limit;  /* of a semaphore's mark: its limit, which the text tells behind the number, as "~16"; else 0 */
};

void value_make(struct core *core, uint64_t number, int64_t since_us, struct lease_value *ret_value);
void value_mark_kept(struct lease_value *v); /* it is left behind */
struct span value_in_text(struct core *core, const struct lease_value *v);
/* The value of such a text. False: it is none of this daemon. */
bool value_read(const struct core *core, struct span text, struct lease_value *ret_value);
/*
 * For how long a value is held, whose public part this is, when the stores' clock shows now_us; -1: it does not tell. What an earlier version wrote is random,
 * and passes for a moment of the last year once in 9,000 times.
 */
int64_t value_held_us(struct span public, int64_t now_us);
/* Whether it was left behind: nobody holds it. An earlier version does not mark it. */
bool value_is_kept(struct span public);
/* The limit that the public part of such a value tells; 0: it is not that of a mark. */
unsigned value_limit(struct span holder);

/* What the first of those who wait is, and how the text of a stamp ends. */
enum stamp_kind {
	STAMP_WRITER,
	STAMP_READER,  /* ":s" */
};

/* "<moment, 16 digits>:<daemon-id>:<sequence>", and an end that tells the kind: a place in the queue of a name, see asking.h. */
struct stamp {
	int64_t us; /* 0: none */
	uint64_t sequence;
	enum stamp_kind kind;
	int64_t writer_us; /* READER: the moment of the first writer behind it, as 16 more digits; 0: there is none */
};

struct span stamp_in_text(struct core *core, const struct stamp *s);

static inline bool stamp_equal(const struct stamp *a, const struct stamp *b)
{
	return a->us == b->us && a->sequence == b->sequence;
}

#endif
