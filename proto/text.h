/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes and words, for the inside of proto: folding, bounded writing, what a person may be shown.
 */
#ifndef PROTO_TEXT_H
#define PROTO_TEXT_H

#include "proto/span.h"
#include <stdint.h>

/* Writes what fits and drops the rest; at never passes end. */
struct pen {
	char *at, *end;
};

void pen_span(struct pen *p, struct span text);
void pen_text(struct pen *p, const char *text);

static inline unsigned char byte_fold(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? (unsigned char)(c - 32) : c;
}

static inline bool byte_is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

/* Without regard to the case of ASCII letters. */
bool word_is(struct span text, const char *word);

/*
 * The first eight bytes of a word, folded to upper case, as one number: the key by which tables are searched. WORD_KEY makes
 * the same number of a literal when the program is built, so that a table's row is its only mention.
 */
uint64_t word_key(struct span text);
#define WORD_BYTE(w, i)  ((uint64_t)(unsigned char)((w)[(i) < sizeof(w) ? (i) : sizeof(w) - 1]) << (8 * (i)))
#define WORD_UPPER(w, i) (WORD_BYTE(w, i) - ((w)[(i) < sizeof(w) ? (i) : sizeof(w) - 1] >= 'a' ? (uint64_t)32 << (8 * (i)) : 0))
#define WORD_KEY(w)                                                                                                              \
	(WORD_UPPER(w, 0) | WORD_UPPER(w, 1) | WORD_UPPER(w, 2) | WORD_UPPER(w, 3) | WORD_UPPER(w, 4) | WORD_UPPER(w, 5) |       \
	 WORD_UPPER(w, 6) | WORD_UPPER(w, 7))

/* What a peer sent, as printable ASCII between single quotes, cut where it is long. Returns out. */
#define SHOWN_MAX 64
const char *text_shown(struct span text, char out[SHOWN_MAX]);

/* The length of the well-formed UTF-8 sequence (two bytes or more, no C1 control) that text starts with, or 0. */
size_t utf8_length(struct span text);

/* 1 to TAG_MAX of [A-Za-z0-9_.:-]. */
bool tag_valid(struct span tag);

/* Digits only, at most limit: the number, or -1. */
int64_t count_parse(struct span text, int64_t limit);

#endif
