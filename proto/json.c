/* SPDX-License-Identifier: BSD-2-Clause */
/* See json.h. */
#include "proto/json.h"

#include "proto/proto.h"
#include "proto/text.h"

#include <stdio.h>

static bool is_number(struct span field)
{
	static const struct span words[] = {
#define ANSWER_NUMBER(word) {word, sizeof(word) - 1},
#include "proto/field.def"
	};

	if (field.n > 3 && memcmp(field.p + field.n - 3, "_ms", 3) == 0)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (span_equal(words[i], field))
			return true;
	for (size_t i = 0; i < FIELD_N; i++)
		if (span_equal(span_of(field_table[i].word), field))
			return field_table[i].type == VALUE_COUNT || field_table[i].type == VALUE_PRIORITY;
	return false;
}

/* Matches -?(0|[1-9][0-9]*)(\.[0-9]+)?, with at most as many digits as every JSON reader keeps. */
static bool looks_numeric(struct span text)
{
	size_t at = text.n > 0 && text.p[0] == '-', whole = digits(text, at), part;

	if (whole < 1 || whole > 16 || (whole > 1 && text.p[at] == '0'))
		return false;
	at += whole;
	if (at == text.n)
		return true;
	part = digits(text, at + 1);
	return text.p[at] == '.' && part > 0 && at + 1 + part == text.n;
}

static size_t byte_escape(unsigned char c, char out[UTF8_ESCAPE_MAX])
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *at = c ? strchr(escaped, c) : NULL;

	if (at)
		return (size_t)sprintf(out, "\\%c", letters[at - escaped]);
	return (size_t)sprintf(out, c < 0x80 ? "\\u00%02x" : "\\udc%02x", c);
}

static size_t plain_length(struct span text)
{
	size_t n = 0;

	while (n < text.n && text.p[n] >= ' ' && text.p[n] < 0x7f && text.p[n] != '"' && text.p[n] != '\\')
		n++;
	return n;
}

/* Writes the start of text. Returns how many bytes of text it has used. */
static size_t piece_write(json_put *put, void *to, struct span text)
{
	size_t n = plain_length(text);
	char escaped[UTF8_ESCAPE_MAX];

	n = n > 0 ? n : utf8_visible(text);
	if (n > 0) {
		put(to, text.p, n);
		return n;
	}
	n = utf8_length(text);
	if (n > 0) {
		put(to, escaped, utf8_escape((struct span){text.p, n}, escaped));
		return n;
	}
	put(to, escaped, byte_escape((unsigned char)text.p[0], escaped));
	return 1;
}

void json_text(json_put *put, void *to, struct span text)
{
	put(to, "\"", 1);
	for (size_t n; text.n > 0; text.p += n, text.n -= n)
		n = piece_write(put, to, text);
	put(to, "\"", 1);
}

void json_member(json_put *put, void *to, struct span name, struct span value)
{
	json_text(put, to, name);
	put(to, ":", 1);
	if (is_number(name) && looks_numeric(value))
		put(to, value.p, value.n);
	else
		json_text(put, to, value);
}
