/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes and words: comparison, bounded writing, and texts of a peer made printable. It must never read or write beyond its
 * arguments.
 */
#include "proto/text.h"

#include "proto/proto.h"

void pen_text(struct pen *p, const char *text)
{
	pen_span(p, span_of(text));
}

static bool is_hex(struct span text)
{
	for (size_t i = 0; i < text.n; i++)
		if (!((text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f')))
			return false;
	return true;
}

static bool is_id(struct span text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != '0')
			return is_hex(text);
	return false;
}

bool trace_is_sound(struct span text)
{
	return text.n == TRACE_BYTES && text.p[2] == '-' && text.p[35] == '-' && text.p[52] == '-' && is_hex((struct span){text.p, 2}) &&
	       memcmp(text.p, "ff", 2) != 0 && is_id((struct span){text.p + 3, 32}) && is_id((struct span){text.p + 36, 16}) &&
	       is_hex((struct span){text.p + 53, 2});
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
	static const char hex[] = "0123456789abcdef";
	char *at = out, *end = out + SHOWN_MAX - sizeof("\\xff...'");

	*at++ = '\'';
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (at >= end) {
			memcpy(at, "...", 3);
			at += 3;
			break;
		}
		if (c >= 0x20 && c < 0x7f) {
			*at++ = (char)c;
			continue;
		}
		*at++ = '\\';
		*at++ = 'x';
		*at++ = hex[c >> 4];
		*at++ = hex[c & 15];
	}
	*at++ = '\'';
	*at = '\0';
	return out;
}

static bool utf8_tail(struct span text, size_t from, size_t to)
{
	if (text.n < to)
		return false;
	for (; from < to; from++)
		if (((unsigned char)text.p[from] & 0xc0) != 0x80)
			return false;
	return true;
}

/* Unicode, table 3-7: no overlong form, no surrogate, no code point above U+10FFFF. */
size_t utf8_length(struct span text)
{
	unsigned char first = text.n > 0 ? (unsigned char)text.p[0] : 0, second = text.n > 1 ? (unsigned char)text.p[1] : 0;

	if (first >= 0xc2 && first <= 0xdf)
		return utf8_tail(text, 1, 2) && (first > 0xc2 || second >= 0xa0) ? 2 : 0;
	if (first >= 0xe0 && first <= 0xef) {
		bool stray = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f);

		return utf8_tail(text, 1, 3) && !stray ? 3 : 0;
	}
	if (first >= 0xf0 && first <= 0xf4) {
		bool stray = (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);

		return utf8_tail(text, 1, 4) && !stray ? 4 : 0;
	}
	return 0;
}

uint32_t utf8_rune(struct span sequence)
{
	uint32_t c = (unsigned char)sequence.p[0] & (0xffu >> (sequence.n + 1));

	for (size_t i = 1; i < sequence.n; i++)
		c = c << 6 | ((unsigned char)sequence.p[i] & 0x3f);
	return c;
}

/* Unicode: Default_Ignorable_Code_Point, among them all marks of direction; the separators of lines; the marks of annotations. */
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

static size_t unit_write(uint32_t unit, char *out)
{
	static const char hex[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'u';
	for (unsigned i = 0; i < 4; i++)
		out[2 + i] = hex[unit >> (12 - 4 * i) & 15];
	return 6;
}

size_t utf8_escape(struct span sequence, char out[UTF8_ESCAPE_MAX])
{
	uint32_t c = utf8_rune(sequence);

	if (c < 0x10000)
		return unit_write(c, out);
	return unit_write(0xd800 + ((c - 0x10000) >> 10), out) + unit_write(0xdc00 + ((c - 0x10000) & 0x3ff), out + 6);
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
