/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON, from lines of the protocol. A byte that is no UTF-8 stands as a lone surrogate, \udc80 to \udcff, as in `redlock --json`. */
#ifndef WEB_JSON_H
#define WEB_JSON_H

#include "daemon/base/buf.h"
#include "proto/proto.h"

void json_text(struct buf *out, struct span text); /* with its quotes */
/* "name":value — a number where the field is one. as: its name in JSON; NULL: the same. Nothing if the line lacks it. Begins with a comma unless it is the first. */
void json_field(struct buf *out, const struct reply_line *line, const char *field, const char *as);
void json_member(struct buf *out, struct span name, struct span value);
/* All fields: {…} */
void json_line(struct buf *out, const struct reply_line *line);
/* A comma, unless an object or a list has just begun. */
void json_comma(struct buf *out);
static inline void json_raw(struct buf *out, const char *text)
{
	buf_append(out, text, strlen(text));
}

#endif
