/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splits a line into words and field=value, for requests and replies alike. Internal to proto.
 */
#ifndef PROTO_TOKEN_H
#define PROTO_TOKEN_H

#include "proto/span.h"

struct cursor {
	char *at, *end;
};

/* A cursor over a line without its LF; leaves out one CR at the end. */
struct cursor cursor_over(char *line, size_t n);

struct token {
	struct span text; /* a word: all of it, unquoted; a field: the part before the first '=' */
	struct span value;
	bool is_field;
};

enum split {
	SPLIT_END = 0,
	SPLIT_TOKEN,
	SPLIT_OPEN_QUOTE,
	SPLIT_BAD_ESCAPE,
	SPLIT_AFTER_QUOTE, /* a closing quote that is not followed by a blank */
	SPLIT_CONTROL,     /* a raw control byte */
};

/* Takes the next token, unquoted in place. Unless it returns SPLIT_TOKEN, the cursor is at the end or at the fault. */
enum split token_next(struct cursor *c, struct token *ret_token);

/* Describes the fault, for people. */
const char *split_text(enum split fault);

#endif
