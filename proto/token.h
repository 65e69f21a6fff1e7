/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splitting a line into words and field=value, as both directions of the protocol are split. For the inside of proto.
 */
#ifndef PROTO_TOKEN_H
#define PROTO_TOKEN_H

#include "proto/span.h"

struct cursor {
	char *at, *end;
};

/* A cursor over a line without its LF; one CR at the end is no part of it. */
struct cursor cursor_over(char *line, size_t n);

struct token {
	struct span text; /* a word: all of it, unquoted; a field: what stands before its first '=' */
	struct span value;
	bool is_field;
};

enum split {
	SPLIT_END = 0,
	SPLIT_TOKEN,
	SPLIT_OPEN_QUOTE,
	SPLIT_BAD_ESCAPE,
	SPLIT_AFTER_QUOTE, /* a closing quote with something other than a blank behind it */
	SPLIT_CONTROL,     /* a raw control byte */
};

/* The next token, unquoted in place. After anything but SPLIT_TOKEN the cursor stands at the end or at the fault. */
enum split token_next(struct cursor *c, struct token *ret_token);

/* What is wrong, for a person. */
const char *split_text(enum split fault);

#endif
