/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes and words: case folding, bounded writing, printable text. Internal to proto.
 */
#ifndef PROTO_TEXT_H
#define PROTO_TEXT_H

#include "proto/span.h"
#include <stdint.h>

/* A writer that drops what does not fit; at never exceeds end. */
struct pen {
	char *at, *end;
};

static inline void pen_span(struct pen *p, struct span text)
{
	size_t room = (size_t)(p->end - p->at), n = text.n < room ? text.n : room;

	if (n > 0)
		memcpy(p->at, text.p, n);
	p->at += n;
}

void pen_text(struct pen *p, const char *text);
void pen_field(struct pen *p, unsigned field); /* "wait=dur|forever" for that enum field */

static inline unsigned char byte_fold(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? (unsigned char)(c - 32) : c;
}

static inline bool byte_is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

/* -1: it is not a digit. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

/* Whether the text is that word. Ignores ASCII case. */
bool word_is(struct span text, const char *word);

/*
 * The key for lookups in tables: the first eight bytes of a word, folded to upper case, as one number. WORD_KEY computes the same number from a
 * literal at compile time.
 */
uint64_t word_key(struct span text);
#define WORD_BYTE(w, i)  ((uint64_t)(unsigned char)((w)[(i) < sizeof(w) ? (i) : sizeof(w) - 1]) << (8 * (i)))
#define WORD_UPPER(w, i) (WORD_BYTE(w, i) - ((w)[(i) < sizeof(w) ? (i) : sizeof(w) - 1] >= 'a' ? (uint64_t)32 << (8 * (i)) : 0))
#define WORD_KEY(w)                                                                                                              \
	(WORD_UPPER(w, 0) | WORD_UPPER(w, 1) | WORD_UPPER(w, 2) | WORD_UPPER(w, 3) | WORD_UPPER(w, 4) | WORD_UPPER(w, 5) |       \
	 WORD_UPPER(w, 6) | WORD_UPPER(w, 7))

/* Writes text of a peer as printable ASCII between single quotes, and cuts a long text. Returns out. */
#define SHOWN_MAX 64
const char *text_shown(struct span text, char out[SHOWN_MAX]);

/* The length of the well-formed UTF-8 sequence (two bytes or more, no C1 control) at the start of text; 0: none. */
size_t utf8_length(struct span text);

/*
 * The same, but also 0 for a character that takes no space, or that changes the direction of the characters around it. A name with one looks like
 * another name, so people see its bytes.
 */
size_t utf8_visible(struct span text);

/* The code point of a well-formed sequence. */
uint32_t utf8_rune(struct span sequence);

/* Writes a well-formed sequence as JSON escapes it: "\u202e", or two surrogates for a character beyond U+FFFF. Returns the length, 6 or 12. */
#define UTF8_ESCAPE_MAX 13 /* with a NUL */
size_t utf8_escape(struct span sequence, char out[UTF8_ESCAPE_MAX]);

/* Whether tag is 1 to TAG_MAX characters of [A-Za-z0-9_.:-]. */
bool tag_valid(struct span tag);

/* Returns how many digits follow from that index on. */
size_t digits(struct span text, size_t from);

/* Parses digits up to limit. -1: no digits, another character, or above limit. */
int64_t count_parse(struct span text, int64_t limit);

#endif
