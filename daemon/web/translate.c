/* SPDX-License-Identifier: BSD-2-Clause */
/* From URLs to lines, and from lines to JSON. Fields of a URL are not decoded by evhttp, because its values end at their first NUL. */
#include "daemon/web/translate.h"

#include "proto/json.h"
#include "proto/text.h"

#include <stdio.h>

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

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

/* --- queries of URLs ------------------------------------------------------------------------------------------------ */

bool url_decode(struct span from, bool blank, char *ret_text, size_t size, size_t *ret_n)
{
	size_t out = 0;
	int high, low;

	for (size_t i = 0; i < from.n; i++, out++) {
		if (out == size)
			return false;
		ret_text[out] = blank && from.p[i] == '+' ? ' ' : from.p[i];
		if (from.p[i] != '%')
			continue;
		high = from.n - i < 3 ? -1 : hex_digit(from.p[i + 1]);
		low = high < 0 ? -1 : hex_digit(from.p[i + 2]);
		if (low < 0)
			return false;
		ret_text[out] = (char)(high << 4 | low);
		i += 2;
	}
	*ret_n = out;
	return true;
}

enum query_outcome query_get(const char *query, const char *field, char *ret_text, size_t size, size_t *ret_n)
{
	size_t name = strlen(field), n;

	for (; query && *query; query += n + (query[n] == '&')) {
		n = strcspn(query, "&");
		if (n > name && query[name] == '=' && strncmp(query, field, name) == 0)
			return url_decode((struct span){query + name + 1, n - name - 1}, true, ret_text, size, ret_n) ? QUERY_FOUND : QUERY_BAD;
	}
	return QUERY_ABSENT;
}

bool query_pass(const char *query, const char *field, char *line, size_t size)
{
	char text[NAME_MAX_BYTES], quoted[NAME_MAX_BYTES * 4 + 3];
	size_t n, length, used = strlen(line);

	switch (query_get(query, field, text, sizeof(text), &n)) {
	case QUERY_ABSENT:
		return true;
	case QUERY_BAD:
		return false;
	case QUERY_FOUND:
		break;
	}
	if (n == 0)
		return true;
	length = quote((struct span){text, n}, quoted, sizeof(quoted));
	if (!length)
		return false;
	n = (size_t)snprintf(line + used, size - used, " %s=%.*s", field, (int)length, quoted);
	return n < size - used;
}
