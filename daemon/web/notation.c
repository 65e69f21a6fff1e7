/* SPDX-License-Identifier: BSD-2-Clause */
/* See notation.h. */
#include "daemon/web/notation.h"

#include "proto/text.h"

/* Fields that are numbers. All others are texts, whatever they look like: a name may be 42. */
static bool is_number(struct span field)
{
	static const char *const words[] = {"fence", "session", "count",  "waiters", "holders", "pos",  "limit",    "held",   "due", "leased",
	                                    "pid",   "uid",     "permits", "value",  "free", "priority", "rtt_us",  "dead"};

	if (field.n > 3 && memcmp(field.p + field.n - 3, "_ms", 3) == 0)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (span_equal(field, span_of(words[i])))
			return true;
	return false;
}

static bool looks_numeric(struct span text)
{
	size_t sign = text.n > 0 && text.p[0] == '-', n = text.n - sign;

	if (n < 1 || n > 16 || (n > 1 && text.p[sign] == '0'))
		return false;
	for (size_t i = sign; i < text.n; i++)
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
	return true;
}

static void json_byte(struct buf *out, unsigned char c)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt", digit[] = "0123456789abcdef";
	const char *at = c ? strchr(escaped, c) : NULL;
	const char hex[] = {'\\', 'u', c < 0x80 ? '0' : 'd', c < 0x80 ? '0' : 'c', digit[c >> 4], digit[c & 15]};

	if (at)
		buf_append(out, (const char[]){'\\', letters[at - escaped]}, 2);
	else if (c >= 0x80 || byte_is_control(c))
		buf_append(out, hex, sizeof(hex));
	else
		buf_append(out, &c, 1);
}

static size_t plain_length(struct span text)
{
	size_t n = 0;

	while (n < text.n && text.p[n] >= ' ' && text.p[n] < 0x7f && text.p[n] != '"' && text.p[n] != '\\')
		n++;
	return n;
}

void notation_text(struct buf *out, struct span text)
{
	char escaped[UTF8_ESCAPE_MAX];
	size_t n;

	buf_append(out, "\"", 1);
	for (; text.n > 0; text.p += n, text.n -= n) {
		n = plain_length(text);
		if (n > 0) {
			buf_append(out, text.p, n);
			continue;
		}
		n = utf8_length(text);
		if (n > 0 && utf8_visible(text) == 0)
			buf_append(out, escaped, utf8_escape((struct span){text.p, n}, escaped));
		else if (n > 0)
			buf_append(out, text.p, n);
		else
			json_byte(out, (unsigned char)text.p[0]);
		n += n == 0;
	}
	buf_append(out, "\"", 1);
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
	notation_text(out, name);
	buf_append(out, ":", 1);
	if (is_number(name) && looks_numeric(value))
		buf_append(out, value.p, value.n);
	else
		notation_text(out, value);
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
