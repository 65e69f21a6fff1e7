/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON, from lines of the protocol, in a buffer: see proto/json.h. */
#ifndef WEB_NOTATION_H
#define WEB_NOTATION_H

#include "daemon/base/buf.h"
#include "proto/proto.h"

void notation_text(struct buf *out, struct span text); /* with its quotes */
/*
 * "name":value, a number where the field is one. as: its name in JSON; NULL: the same. Nothing if the line lacks the field. Puts a comma before it,
 * unless it is the first.
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

#endif
