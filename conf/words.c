/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory, alternatives and UTF-8.
 */
#include "conf/words.h"

#include "proto/proto.h"
#include "proto/text.h"

#include <stdlib.h>
#include <strings.h>

void *conf_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p) {
		fputs("redlockd: out of memory\n", stderr);
		abort();
	}
	return p;
}

char *conf_strndup(const char *text, size_t n)
{
	char *copy = conf_alloc(n + 1);

	memcpy(copy, text, n);
	return copy;
}

char *conf_strdup(const char *text)
{
	return conf_strndup(text, strlen(text));
}

int alternative_find(const char *alternatives, const char *word)
{
	size_t n;
	int i = 0;

	for (const char *one = alternatives; *one; one += n + (one[n] == '|'), i++) {
		n = strcspn(one, "|");
		if (strlen(word) == n && strncasecmp(one, word, n) == 0)
			return i;
	}
	return -1;
}

size_t utf8_decode(const char *p, size_t n, uint32_t *ret_rune)
{
	size_t length = n > 0 && (unsigned char)*p < 0x80 ? 1 : utf8_length((struct span){p, n});

	if (length > 0)
		*ret_rune = length == 1 ? (unsigned char)*p : utf8_rune((struct span){p, length});
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
	if (rune < 0x20 || rune == 0x7f) /* utf8_decode returns no C1 control */
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

/* Whether YAML reads the text without quotes as this same text, and as a value. */
static bool text_is_plain(const char *text)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._";
	size_t n = strlen(text);

	return n > 0 && strchr(first, *text) && !text[strspn(text, WORD_LETTERS "/:@+")] && text[n - 1] != ':' && strcasecmp(text, "null") != 0;
}

void text_print(const char *text, FILE *out)
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

char *text_line(const char *text)
{
	char *line = NULL;
	size_t n;
	FILE *out = open_memstream(&line, &n);

	if (!out)
		abort();
	text_print(text, out);
	if (fclose(out))
		abort();
	return line;
}
