/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of a command, as RESP. Each function writes to a place that has room, and returns the place after what it wrote. A word of n bytes takes at most n
 * + WORD_MOST bytes, and a number NUMBER_MOST.
 */
#ifndef REDIS_WORD_H
#define REDIS_WORD_H

#include "daemon/base/buf.h"
#include "proto/span.h"

#include <stdint.h>

#define WORD_MOST   32
#define NUMBER_MOST (WORD_MOST + 20)

char *word_digits(char *at, uint64_t n); /* the digits alone */
char *word_number(char *at, int64_t n);

static inline char *word_end(char *at)
{
	return (char *)memcpy(at, "\r\n", 2) + 2;
}

/* "$12\r\n", which precedes a text of 12 bytes; or "*12\r\n", before 12 words. */
static inline char *word_head(char *at, char type, uint64_t n)
{
	*at++ = type;
	if (n >= 100) {
		at = word_digits(at, n);
	} else {
		*at = (char)('0' + n / 10);
		at += n >= 10;
		*at++ = (char)('0' + n % 10);
	}
	return word_end(at);
}

static inline char *word_bytes(char *at, const char *p, size_t n)
{
	if (n)
		memcpy(at, p, n);
	return at + n;
}

/* The words that are already in b. */
static inline char *word_copy(char *at, const struct buf *b)
{
	return word_bytes(at, buf_begin(b), buf_length(b));
}

static inline char *word_text(char *at, struct span text)
{
	at = word_head(at, '$', text.n);
	return word_end(word_bytes(at, text.p, text.n));
}

/* One word of two texts. */
static inline char *word_text2(char *at, struct span first, struct span second)
{
	at = word_head(at, '$', first.n + second.n);
	at = word_bytes(at, first.p, first.n);
	return word_end(word_bytes(at, second.p, second.n));
}

/* Appends what was written after the end of b, up to `end`. */
static inline void word_commit(struct buf *b, const char *end)
{
	buf_commit(b, (size_t)(end - (b->data + b->end)));
}

#endif
