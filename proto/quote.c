/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quoting, the inverse of token_next, which returns the same bytes again. The output is only printable ASCII and valid UTF-8.
 */
#include "proto/proto.h"
#include "proto/text.h"

/* Printable ASCII that needs no quotes: all except the space, '"', '\'', '=' and '\\'. */
static const bool bare_table[256] = {
	['!'] = true,
	['#' ... '&'] = true,
	['(' ... '<'] = true,
	['>' ... '['] = true,
	[']' ... '~'] = true,
};

/* Returns how many bytes at the start need no escape between quotes: 1, the length of a visible UTF-8 character, or 0. */
static inline size_t plain_length(struct span text)
{
	unsigned char c = (unsigned char)text.p[0];

	if (c >= 0x80)
		return utf8_visible(text);
	return !byte_is_control(c) && c != '"' && c != '\\';
}

static bool quote_needed(struct span value)
{
	size_t i = 0, n;

	while (i < value.n && bare_table[(unsigned char)value.p[i]])
		i++;
	for (; i < value.n; i += n) {
		n = bare_table[(unsigned char)value.p[i]] ? 1 : utf8_visible((struct span){value.p + i, value.n - i});
		if (n == 0)
			return true;
	}
	return value.n == 0;
}

static size_t escape_write(unsigned char c, char out[4])
{
	static const char hex[] = "0123456789abcdef";
	static const char letters[128] = {['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\'};

	out[0] = '\\';
	if (c < 128 && letters[c]) {
		out[1] = letters[c];
		return 2;
	}
	out[1] = 'x';
	out[2] = hex[c >> 4];
	out[3] = hex[c & 15];
	return 4;
}

/* Not inlined: most texts need no quotes. */
static size_t __attribute__((noinline)) quote_within(struct span value, char *out, size_t size)
{
	size_t at = 0;
	char escape[4];

	if (size < 2)
		return 0;
	out[at++] = '"';
	for (size_t i = 0, n; i < value.n; i += n) {
		const char *from = value.p + i;
		size_t length = n = plain_length((struct span){from, value.n - i});

		if (n == 0) {
			n = 1;
			length = escape_write((unsigned char)*from, escape);
			from = escape;
		}
		if (size - at < length + 1)
			return 0;
		memcpy(out + at, from, length);
		at += length;
	}
	out[at++] = '"';
	return at;
}

size_t quote(struct span value, char *out, size_t size)
{
	if (quote_needed(value))
		return quote_within(value, out, size);
	if (value.n > size)
		return 0;
	memcpy(out, value.p, value.n);
	return value.n;
}
