/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON from lines of the protocol, in a buffer (see proto/json.h), and fields of queries of URLs: "prefix=a%2Fb&limit=10". */
#ifndef WEB_TRANSLATE_H
#define WEB_TRANSLATE_H

#include "daemon/base/buf.h"
#include "proto/proto.h"

void notation_text(struct buf *out, struct span text); /* with its quotes */
/*
 * "name":value, a number if the field is one. as: its name in JSON; NULL: the same. Writes nothing if the line lacks the field. Puts a comma before it, unless
 * it is the first.
 */
void notation_field(struct buf *out, const struct reply_line *line, const char *field, const char *as);
void notation_member(struct buf *out, struct span name, struct span value);
/* All fields: {…} */
void notation_line(struct buf *out, const struct reply_line *line);
/* A comma, unless an object or a list has just begun. */
void notation_comma(struct buf *out);
static inline void notation_raw(struct buf *out, const char *text)
{
	buf_append(out, text, strlen(text));
}

/* Decodes a part of a URL. blank: '+' is a blank. False: it is malformed, or longer than size. */
bool url_decode(struct span from, bool blank, char *ret_text, size_t size, size_t *ret_n);

enum query_outcome { QUERY_FOUND, QUERY_ABSENT, QUERY_BAD };

/* The decoded bytes of a field, at most size of them. query NULL: there is none. BAD: it is malformed or too long. */
enum query_outcome query_get(const char *query, const char *field, char *ret_text, size_t size, size_t *ret_n);

/* The same, appended to a line as " field=value", quoted if need be. False: BAD, or the line is full. */
bool query_pass(const char *query, const char *field, char *line, size_t size);

#endif
