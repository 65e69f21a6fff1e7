/* SPDX-License-Identifier: BSD-2-Clause */
/* See json.h. */
#include "client/json.h"
#include "proto/text.h"

#include <string.h>

static const struct span texts[] = {
#define ROWS_TEXT(field) {field, sizeof(field) - 1},
#include "client/rows.def"
#undef ROWS_TEXT
};

static void json_byte(FILE *out, unsigned char c)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *at = c ? strchr(escaped, c) : NULL;

	if (at)
		fprintf(out, "\\%c", letters[at - escaped]);
	else if (c >= 0x80)
		fprintf(out, "\\udc%02x", c);
	else if (c < 0x20 || c == 0x7f)
		fprintf(out, "\\u%04x", c);
	else
		putc(c, out);
}

void json_string(FILE *out, struct span text)
{
	char escaped[UTF8_ESCAPE_MAX] = "";
	size_t n;

	putc('"', out);
	for (; text.n; text.p += n, text.n -= n) {
		n = utf8_length(text);
		if (n > 0 && utf8_visible(text) == 0)
			fwrite(escaped, 1, utf8_escape((struct span){text.p, n}, escaped), out);
		else if (n > 0)
			fwrite(text.p, 1, n, out);
		else
			json_byte(out, (unsigned char)text.p[0]);
		n += n == 0;
	}
	putc('"', out);
}

static size_t digits(struct span text, size_t at)
{
	size_t from = at;

	while (at < text.n && text.p[at] >= '0' && text.p[at] <= '9')
		at++;
	return at - from;
}

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?, with no more digits than every reader of JSON keeps. */
static bool looks_numeric(struct span text)
{
	size_t at = text.n && text.p[0] == '-', whole = digits(text, at), part;

	if (!whole || whole > 16 || (whole > 1 && text.p[at] == '0'))
		return false;
	at += whole;
	if (at == text.n)
		return true;
	part = digits(text, at + 1);
	return text.p[at] == '.' && part && at + 1 + part == text.n;
}

static bool field_is_text(struct span field)
{
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (span_equal(texts[i], field))
			return true;
	return false;
}

static struct span span_from(struct redlock_bytes bytes)
{
	return (struct span){bytes.p, bytes.n};
}

static void json_field(FILE *out, struct span name, struct span value)
{
	json_string(out, name);
	putc(':', out);
	if (!field_is_text(name) && looks_numeric(value))
		fwrite(value.p, 1, value.n, out);
	else
		json_string(out, value);
}

/* The words before the fields; ERR has a text instead of fields. */
static void json_words(FILE *out, const struct redlock_line *line)
{
	struct redlock_bytes code = redlock_line_code(line), reason = redlock_line_reason(line);

	json_field(out, SPAN("reply"), span_from(redlock_line_word(line)));
	if (code.n) {
		putc(',', out);
		json_field(out, SPAN("code"), span_from(code));
	}
	if (reason.n) {
		putc(',', out);
		json_field(out, SPAN("text"), span_from(reason));
	}
}

void json_line(FILE *out, const struct redlock_line *line, bool with_words)
{
	size_t i;

	putc('{', out);
	if (with_words)
		json_words(out, line);
	for (i = 0; i < redlock_line_fields(line); i++) {
		if (i || with_words)
			putc(',', out);
		json_field(out, span_from(redlock_line_name(line, i)), span_from(redlock_line_value(line, i)));
	}
	fputs("}\n", out);
}
