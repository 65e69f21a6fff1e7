/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splits a line: blanks separate tokens, a quoted part ends its token, and escapes are decoded in place. The write position
 * never exceeds the read position, and every byte is read once.
 */
#include "proto/token.h"

#include "proto/text.h"

/* In the bare part of a token: a byte of a class after EQUAL ends it. */
enum byte_class { PLAIN = 0, EQUAL, BLANK, QUOTE, CONTROL };

static const unsigned char class_table[256] = {
	[0x00 ... 0x08] = CONTROL,
	['\t'] = BLANK,
	[0x0a ... 0x1f] = CONTROL,
	[' '] = BLANK,
	['"'] = QUOTE,
	['\''] = QUOTE,
	['='] = EQUAL,
	[0x7f] = CONTROL,
};

static inline enum byte_class class_of(char c)
{
	return (enum byte_class)class_table[(unsigned char)c];
}

struct cursor cursor_over(char *line, size_t n)
{
	if (n > 0 && line[n - 1] == '\r')
		n--;
	return (struct cursor){line, line + n};
}

/* Decodes an escape. Moves c->at from the backslash to the last byte of the escape. -1: no such escape. */
static int escape_read(struct cursor *c)
{
	int high, low;

	if (c->end - c->at < 2)
		return -1;
	switch (*++c->at) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'a':
		return '\a';
	case '"':
	case '\\':
		return *c->at;
	case 'x':
		if (c->end - c->at < 3)
			return -1;
		high = hex_digit(c->at[1]);
		low = hex_digit(c->at[2]);
		if (high < 0 || low < 0)
			return -1;
		c->at += 2;
		return high << 4 | low;
	default:
		return -1;
	}
}

static enum split quote_close(struct cursor *c)
{
	c->at++;
	return c->at == c->end || class_of(*c->at) == BLANK ? SPLIT_TOKEN : SPLIT_AFTER_QUOTE;
}

/* Reads from an opening quote to after its closing one. Writes the decoded bytes from the opening quote on, up to *ret_stop. */
static enum split double_quoted(struct cursor *c, char **ret_stop)
{
	char *to = c->at++;

	for (; c->at < c->end; c->at++) {
		int byte = (unsigned char)*c->at;

		if (byte == '"') {
			*ret_stop = to;
			return quote_close(c);
		}
		if (class_of(*c->at) == CONTROL)
			return SPLIT_CONTROL;
		if (byte == '\\') {
			byte = escape_read(c);
			if (byte < 0)
				return SPLIT_BAD_ESCAPE;
		}
		*to++ = (char)byte;
	}
	return SPLIT_OPEN_QUOTE;
}

static enum split single_quoted(struct cursor *c, char **ret_stop)
{
	char *to = c->at++;

	for (; c->at < c->end; c->at++) {
		if (*c->at == '\'') {
			*ret_stop = to;
			return quote_close(c);
		}
		if (class_of(*c->at) == CONTROL)
			return SPLIT_CONTROL;
		if (*c->at == '\\' && c->end - c->at > 1 && c->at[1] == '\'')
			c->at++;
		*to++ = *c->at;
	}
	return SPLIT_OPEN_QUOTE;
}

/* Returns the first byte whose class comes after `last`, or end. */
static inline char *class_skip(char *at, const char *end, enum byte_class last)
{
	while (at < end && class_of(*at) <= last)
		at++;
	return at;
}

static void token_set(struct token *t, char *start, char *stop, char *equal)
{
	t->is_field = equal != NULL;
	t->text = (struct span){start, (size_t)((equal ? equal : stop) - start)};
	if (equal)
		t->value = (struct span){equal + 1, (size_t)(stop - equal - 1)};
}

enum split token_next(struct cursor *c, struct token *ret_token)
{
	enum split outcome = SPLIT_TOKEN;
	char *start, *stop, *equal = NULL, *at = c->at, *end = c->end;

	while (at < end && class_of(*at) == BLANK)
		at++;
	start = at;
	at = class_skip(at, end, PLAIN);
	if (at < end && class_of(*at) == EQUAL) {
		equal = at;
		at = class_skip(at, end, EQUAL);
	}
	c->at = stop = at;
	if (start == end)
		return SPLIT_END;
	if (stop < end && class_of(*stop) == CONTROL)
		return SPLIT_CONTROL;
	if (stop < end && class_of(*stop) == QUOTE)
		outcome = *stop == '"' ? double_quoted(c, &stop) : single_quoted(c, &stop);
	if (outcome == SPLIT_TOKEN)
		token_set(ret_token, start, stop, equal);
	return outcome;
}

const char *split_text(enum split fault)
{
	switch (fault) {
	case SPLIT_OPEN_QUOTE:
		return "an open quote";
	case SPLIT_BAD_ESCAPE:
		return "a bad escape; there are \\xHH \\n \\r \\t \\b \\a \\\" \\\\";
	case SPLIT_AFTER_QUOTE:
		return "a closing quote must be followed by a blank";
	case SPLIT_CONTROL:
		return "a raw control byte; write it as \\xHH between double quotes";
	default:
		return "";
	}
}
