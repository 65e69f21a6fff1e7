/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spelling distance, alternatives and UTF-8.
 */
#include "conf/words.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 64

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool swapped(const char *a, const char *b)
{
	return lower(a[0]) == lower(b[1]) && lower(a[1]) == lower(b[0]);
}

/* Fills one row of the table: the edits from the first i characters of a to the first j characters of b. */
static void distance_row(unsigned row[3][WORD_MAX + 1], const char *a, size_t i, const char *b, size_t nb)
{
	unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *second = row[(i + 1) % 3];

	now[0] = (unsigned)i;
	for (size_t j = 1; j <= nb; j++) {
		unsigned d = before[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));

		d = least(d, least(before[j], now[j - 1]) + 1);
		if (i > 1 && j > 1 && swapped(a + i - 2, b + j - 2))
			d = least(d, second[j - 2] + 1);
		now[j] = d;
	}
}

unsigned word_distance(const char *a, const char *b)
{
	unsigned row[3][WORD_MAX + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > WORD_MAX || nb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++)
		distance_row(row, a, i, b, nb);
	return row[na % 3][nb];
}

bool word_near(const char *typed, const char *meant, unsigned *ret_distance)
{
	unsigned d = word_distance(typed, meant);

	if (d > 2 || d > strlen(typed) / 3)
		return false;
	*ret_distance = d;
	return true;
}

size_t alternative_get(const char *alternatives, unsigned index, char *out, size_t size)
{
	const char *p = alternatives;
	size_t n;

	for (; index; index--) {
		p = strchr(p, '|');
		if (!p)
			return 0;
		p++;
	}
	n = strcspn(p, "|");
	if (n >= size)
		return 0;
	memcpy(out, p, n);
	out[n] = '\0';
	return n;
}

int alternative_find(const char *alternatives, const char *word)
{
	char one[WORD_MAX];

	for (unsigned i = 0; alternative_get(alternatives, i, one, sizeof(one)); i++)
		if (!strcasecmp(one, word))
			return (int)i;
	return -1;
}

static size_t utf8_length(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead < 0xe0)
		return 2;
	if (lead >= 0xe0 && lead < 0xf0)
		return 3;
	return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

size_t utf8_decode(const char *p, size_t n, uint32_t *ret_rune)
{
	static const uint32_t first[5] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = n ? utf8_length((unsigned char)*p) : 0;
	uint32_t rune;

	if (!length || length > n)
		return 0;
	rune = (unsigned char)*p & (length == 1 ? 0x7fu : 0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if (((unsigned char)p[i] & 0xc0) != 0x80)
			return 0;
		rune = rune << 6 | ((unsigned char)p[i] & 0x3f);
	}
	if (rune < first[length] || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
		return 0;
	*ret_rune = rune;
	return length;
}

size_t utf8_count(const char *p, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)p[i] & 0xc0) != 0x80;
	return count;
}

bool rune_printable(uint32_t rune)
{
	if (rune < 0x20 || (rune >= 0x7f && rune < 0xa0)) /* C0, DEL, C1 with NEL */
		return false;
	if (rune >= 0x2028 && rune < 0x202f) /* line and paragraph separator, direction overrides */
		return false;
	if (rune >= 0x2066 && rune < 0x206a)
		return false;
	return rune != 0xfeff && rune != 0xfffe && rune != 0xffff;
}

bool text_printable(const char *text, size_t n)
{
	uint32_t rune;
	size_t length;

	for (size_t i = 0; i < n; i += length) {
		length = utf8_decode(text + i, n - i, &rune);
		if (!length || !rune_printable(rune))
			return false;
	}
	return true;
}

size_t lookalike_find(const char *text, size_t n, bool anywhere, uint32_t *ret_rune)
{
	size_t at = 0, length;

	for (; at < n; at += length) {
		length = utf8_decode(text + at, n - at, ret_rune);
		if (!length)
			return n;
		if (lookalike_of(*ret_rune) && (anywhere || at == 0 || at + length == n || lookalike_of(*ret_rune) == ' '))
			return at;
	}
	return n;
}

const char *text_show(const char *text, char out[SHOW_MAX])
{
	size_t n = strlen(text), at = 0;
	uint32_t rune;

	for (size_t i = 0, length; i < n; i += length) {
		length = utf8_decode(text + i, n - i, &rune);
		if (at + 12 > SHOW_MAX) {
			memcpy(out + at, "...", 4);
			return out;
		}
		if (length && rune_printable(rune)) {
			memcpy(out + at, text + i, length);
			at += length;
		} else {
			at += (size_t)snprintf(out + at, SHOW_MAX - at, "\\x%02x", (unsigned char)text[i]);
			length = 1;
		}
	}
	out[at] = '\0';
	return out;
}

/* Whether every YAML reader takes the unquoted text for a string. */
static bool text_is_plain(const char *text)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._";
	static const char later[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:@+-";
	size_t n = strlen(text);

	if (!n || !strchr(first, *text) || text[strspn(text, later)] || text[n - 1] == ':')
		return false;
	return alternative_find("no|yes|false|true|off|on|null|y|n", text) < 0;
}

void value_print_text(const char *text, FILE *out)
{
	if (text_is_plain(text)) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}
