/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our values of keys and our tickets at the stores. Both are kept as numbers. Their texts begin with the daemon's id or contain it, and are written into
 * memory of the effects where a call or a record needs them.
 */
#ifndef CORE_VALUE_H
#define CORE_VALUE_H

#include "daemon/core/event/core.h"

/*
 * "<daemon-id>:<number>:<32 hex>": fresh for every attempt, never used again. The first 12 hex digits say since when this daemon holds the name, in ms of the
 * stores' clock, lowest digit first. The stores show these digits to others, and everything before them. The other 80 bits are a secret: nobody else can
 * guess it within a lease, however fast a store answers. In a value without a holder, which an UNLOCK keep= or a lock-delay left, the digits say when the
 * hold ended, and their highest bit is set.
 */
struct lease_value {
	uint64_t number; /* 0: no value yet */
	uint64_t secret[2];
	unsigned limit;  /* the limit of the semaphore, if this is the value of its mark; the text has it after the number, as "~16". Else 0 */
};

void value_make(struct core *core, uint64_t number, int64_t since_us, struct lease_value *ret_value);
void value_mark_kept(struct lease_value *v); /* it is left without a holder */
struct span value_in_text(struct core *core, const struct lease_value *v);
/* The value that the text has. False: it is not a value of this daemon. */
bool value_read(const struct core *core, struct span text, struct lease_value *ret_value);
/*
 * How long the value with this public part has been held when the stores' clock shows now_us; -1: the value does not say. A value of an earlier version is
 * random: once in 9,000 times it looks like a moment of the last year.
 */
int64_t value_held_us(struct span public, int64_t now_us);
/* Whether it was left without a holder. An earlier version does not mark that. */
bool value_is_kept(struct span public);
/* The limit in the public part of such a value; 0: not the value of a mark. */
unsigned value_limit(struct span holder);

/* The kind of the first waiter, and how the text of a stamp ends. */
enum stamp_kind {
	STAMP_WRITER,
	STAMP_READER,  /* ":s" */
};

/* "<moment, 16 digits>:<daemon-id>:<sequence>", then the kind: a place in the queue of a name, see asking.h. */
struct stamp {
	int64_t us; /* 0: none */
	uint64_t sequence;
	enum stamp_kind kind;
	int64_t writer_us; /* READER: the moment of the first writer after it, as 16 more digits; 0: there is none */
};

struct span stamp_in_text(struct core *core, const struct stamp *s);

static inline bool stamp_equal(const struct stamp *a, const struct stamp *b)
{
	return a->us == b->us && a->sequence == b->sequence;
}

#endif
