/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a source: its lines, and flaws that are found before parsing. Columns count characters, not bytes.
 */
#include "conf/source.h"

#include "conf/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct conf_source *source_add(struct conf_source **list, const char *label, const char *text, size_t n)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct conf_source *s = conf_alloc(sizeof(*s));

	if (n >= 3 && !memcmp(text, bom, 3)) {
		text += 3;
		n -= 3;
	}
	s->label = conf_strdup(label);
	s->text = conf_strndup(text, n);
	s->n = n;
	s->order = *list ? (*list)->order + 1 : 0;
	s->next = *list;
	*list = s;
	return s;
}

void source_free(struct conf_source *list)
{
	while (list) {
		struct conf_source *next = list->next;

		free(list->label);
		free(list->text);
		free(list);
		list = next;
	}
}

static size_t line_length(const char *p, size_t n)
{
	const char *end = memchr(p, '\n', n);

	return end ? (size_t)(end - p) : n;
}

const char *source_line(const struct conf_source *s, unsigned line, size_t *ret_n)
{
	size_t at = 0, n;

	for (; line > 1 && at < s->n; line--)
		at += line_length(s->text + at, s->n - at) + 1;
	if (at > s->n)
		at = s->n;
	n = line_length(s->text + at, s->n - at);
	*ret_n = n && s->text[at + n - 1] == '\r' ? n - 1 : n;
	return s->text + at;
}

/* The flaw of one character, or NULL. indent: only blanks precede it in its line. */
static const char *rune_flaw(const char *p, size_t n, bool indent, size_t *ret_length)
{
	uint32_t rune;
	size_t length = utf8_decode(p, n, &rune);

	if (!length)
		return "this is not valid UTF-8";
	*ret_length = length;
	if (!rune)
		return "a NUL byte has no place in a configuration";
	if (rune == '\t')
		return indent ? "a tab cannot indent; use spaces" : NULL;
	if (rune == '\r' && (n == 1 || p[1] == '\n'))
		return NULL;
	return rune_printable(rune) ? NULL : "a control character has no place in a configuration";
}

static const char *line_flaw(const char *p, size_t n, size_t rest, unsigned *ret_column)
{
	bool indent = true;
	unsigned column = 1;
	size_t length;

	for (size_t i = 0; i < n; i += length, column++) {
		const char *flaw =
			i < SOURCE_LINE_MAX ? rune_flaw(p + i, rest - i, indent, &length) : "this line is longer than 4096 bytes";

		if (flaw) {
			*ret_column = column;
			return flaw;
		}
		indent = indent && p[i] == ' ';
	}
	return NULL;
}

const char *source_flaw(const struct conf_source *s, struct source_place *ret_place, size_t *ret_usable)
{
	unsigned line = 1, column;

	if (s->n > SOURCE_MAX) {
		*ret_place = (struct source_place){1, 1};
		*ret_usable = 0;
		return "this is larger than 1 MiB, too large for a configuration";
	}
	for (size_t at = 0; at < s->n; line++) {
		size_t n = line_length(s->text + at, s->n - at);
		const char *flaw = line_flaw(s->text + at, n, s->n - at, &column);

		if (flaw) {
			*ret_place = (struct source_place){line, column};
			*ret_usable = at;
			return flaw;
		}
		at += n + 1;
	}
	return NULL;
}
