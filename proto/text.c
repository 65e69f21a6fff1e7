/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes and words: comparison, bounded writing, and making text of a peer printable. It must never read or write beyond its arguments.
 */
#include "proto/text.h"

#include "proto/proto.h"

#include <stdio.h>

void pen_text(struct pen *p, const char *text)
{
	pen_span(p, span_of(text));
}

bool trace_is_sound(struct span text)
{
	static const char hex[] = "0123456789abcdef";
	char t[TRACE_BYTES + 1] = "";

	if (text.n != TRACE_BYTES)
		return false;
	memcpy(t, text.p, TRACE_BYTES);
	return strspn(t, hex) == 2 && memcmp(t, "ff", 2) != 0 && t[2] == '-' && strspn(t + 3, hex) == 32 && strspn(t + 3, "0") < 32 && t[35] == '-' &&
	       strspn(t + 36, hex) == 16 && strspn(t + 36, "0") < 16 && t[52] == '-' && strspn(t + 53, hex) == 2;
}

bool word_is(struct span text, const char *word)
{
	size_t i = 0;

	for (; i < text.n && word[i]; i++)
		if (byte_fold((unsigned char)text.p[i]) != byte_fold((unsigned char)word[i]))
			return false;
	return i == text.n && !word[i];
}

uint64_t word_key(struct span text)
{
	uint64_t key = 0;

	for (size_t i = text.n < sizeof(key) ? text.n : sizeof(key); i-- > 0;)
		key = key << 8 | byte_fold((unsigned char)text.p[i]);
	return key;
}

const char *text_shown(struct span text, char out[SHOWN_MAX])
{
	char *at = out, *end = out + SHOWN_MAX - sizeof("\\xff...'");
	size_t i = 0;

	*at++ = '\'';
	for (; i < text.n && at < end; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c >= 0x20 && c < 0x7f)
			*at++ = (char)c;
		else
			at += sprintf(at, "\\x%02x", c);
	}
	sprintf(at, i < text.n ? "...'" : "'");
	return out;
}

uint32_t utf8_rune(struct span sequence)
{
	uint32_t c = (unsigned char)sequence.p[0] & (0xffu >> (sequence.n + 1));

	for (size_t i = 1; i < sequence.n; i++)
		c = c << 6 | ((unsigned char)sequence.p[i] & 0x3f);
	return c;
}

/* Unicode, table 3-7: no overlong form, no surrogate, no code point above U+10FFFF. */
size_t utf8_length(struct span text)
{
	static const uint32_t least[] = {[2] = 0xa0, [3] = 0x800, [4] = 0x10000};
	unsigned char first = text.n > 0 ? (unsigned char)text.p[0] : 0;
	size_t n = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	uint32_t c;

	if (n == 0 || text.n < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (((unsigned char)text.p[i] & 0xc0) != 0x80)
			return 0;
	c = utf8_rune((struct span){text.p, n});
	return c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? n : 0;
}

/* Unicode: Default_Ignorable_Code_Point, which includes all direction marks; line separators; annotation marks. */
static bool is_invisible(uint32_t c)
{
	static const uint32_t range[][2] = {
		{0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
		{0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
		{0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	};

	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		if (c >= range[i][0] && c <= range[i][1])
			return true;
	return false;
}

size_t utf8_visible(struct span text)
{
	size_t n = utf8_length(text);

	return n > 0 && !is_invisible(utf8_rune((struct span){text.p, n})) ? n : 0;
}

size_t utf8_escape(struct span sequence, char out[UTF8_ESCAPE_MAX])
{
	uint32_t c = utf8_rune(sequence);

	if (c < 0x10000)
		return (size_t)sprintf(out, "\\u%04x", c);
	return (size_t)sprintf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10 & 0x3ff), 0xdc00 + (c & 0x3ff));
}

bool tag_valid(struct span tag)
{
	if (tag.n < 1 || tag.n > TAG_MAX)
		return false;
	for (size_t i = 0; i < tag.n; i++) {
		unsigned char c = byte_fold((unsigned char)tag.p[i]);

		if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != ':' && c != '-')
			return false;
	}
	return true;
}

size_t digits(struct span text, size_t from)
{
	size_t at = from;

	while (at < text.n && text.p[at] >= '0' && text.p[at] <= '9')
		at++;
	return at - from;
}

int64_t count_parse(struct span text, int64_t limit)
{
	int64_t number = 0;

	for (size_t i = 0; i < text.n; i++) {
		int64_t digit = text.p[i] - '0';

		if (digit < 0 || digit > 9 || number > (limit - digit) / 10)
			return -1;
		number = number * 10 + digit;
	}
	return text.n > 0 ? number : -1;
}
