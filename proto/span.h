/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A span is a borrowed sequence of bytes: it owns nothing, and may lack a NUL at its end. Each function that returns a span documents its owner.
 */
#ifndef PROTO_SPAN_H
#define PROTO_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
	const char *p;
	size_t n;
};

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})

static inline struct span span_of(const char *text)
{
	return (struct span){text, strlen(text)};
}

static inline bool span_equal(struct span a, struct span b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The order of their bytes: <0, 0, >0. */
static inline int span_compare(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static inline bool span_starts(struct span text, struct span prefix)
{
	return text.n >= prefix.n && (prefix.n == 0 || memcmp(text.p, prefix.p, prefix.n) == 0);
}

/* Takes the next word of a text with blanks between words. False: none is left. */
static inline bool span_word(struct span *rest, struct span *ret_word)
{
	const char *blank;

	while (rest->n > 0 && rest->p[0] == ' ')
		*rest = (struct span){rest->p + 1, rest->n - 1};
	if (rest->n == 0)
		return false;
	blank = (const char *)memchr(rest->p, ' ', rest->n);
	*ret_word = (struct span){rest->p, blank ? (size_t)(blank - rest->p) : rest->n};
	*rest = (struct span){rest->p + ret_word->n, rest->n - ret_word->n};
	return true;
}

#endif
