/* SPDX-License-Identifier: BSD-2-Clause */
/* See notation.h. */
#include "daemon/web/notation.h"

#include "proto/json.h"

static void put(void *to, const char *p, size_t n)
{
	buf_append(to, p, n);
}

void notation_text(struct buf *out, struct span text)
{
	json_text(put, out, text);
}

void notation_comma(struct buf *out)
{
	size_t n = buf_length(out);
	char last = n > 0 ? buf_begin(out)[n - 1] : '{';

	if (last != '{' && last != '[')
		buf_append(out, ",", 1);
}

void notation_member(struct buf *out, struct span name, struct span value)
{
	notation_comma(out);
	json_member(put, out, name, value);
}

void notation_field(struct buf *out, const struct reply_line *line, const char *field, const char *as)
{
	struct span value = reply_find(line, field);

	if (value.p)
		notation_member(out, span_of(as ? as : field), value);
}

void notation_line(struct buf *out, const struct reply_line *line)
{
	notation_raw(out, "{");
	for (unsigned i = 0; i < line->fields; i++)
		notation_member(out, line->field[i].name, line->field[i].value);
	notation_raw(out, "}");
}
