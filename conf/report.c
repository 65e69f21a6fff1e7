/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources, and messages with a place. A message is formatted when the mistake is found, because its source may be freed before printing. Messages are
 * sorted by source, line and column. Only printable characters are printed, whatever the source contains. Columns count characters, not bytes.
 */
#include "conf/report.h"

#include "conf/words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTIVES_MOST 10 /* libyaml compares each directive with all others */
#define MESSAGES_MAX 200 /* messages that are printed; all are counted */
#define MARGIN       96  /* columns of a source line that are printed */

struct conf_message {
	struct conf_message *next;
	unsigned order;
	struct source_place place;
	char *text;
};

struct conf_source *source_add(struct conf_source **list, const char *label, const char *text, size_t n)
{
	struct conf_source *s = conf_alloc(sizeof(*s));
	size_t mark = n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

	s->label = conf_strdup(label);
	s->text = conf_strndup(text + mark, n - mark);
	s->n = n - mark;
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

/* Returns what is wrong with one character, or NULL. indent: only blanks precede it in its line. */
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
	if (rune == '\n' || (rune == '\r' && (n == 1 || p[1] == '\n')))
		return NULL;
	return rune_printable(rune) ? NULL : "a control character has no place in a configuration";
}

const char *source_flaw(const struct conf_source *s, struct source_place *ret_place)
{
	struct source_place place = {1, 1};
	const char *flaw = s->n > SOURCE_MAX ? "this is larger than 1 MiB, too large for a configuration" : NULL;
	unsigned directives = 0;
	bool indent = true;

	for (size_t at = 0, length; at < s->n && !flaw; at += length) {
		flaw = rune_flaw(s->text + at, s->n - at, indent, &length);
		if (!flaw && place.column == 1 && s->text[at] == '%' && ++directives > DIRECTIVES_MOST)
			flaw = "these are more than 10 directives of YAML: a configuration needs none";
		if (flaw)
			break;
		indent = s->text[at] == '\n' || (indent && s->text[at] == ' ');
		place = s->text[at] == '\n' ? (struct source_place){place.line + 1, 1} : (struct source_place){place.line, place.column + 1};
	}
	*ret_place = place;
	return flaw;
}

/* Prints one character; *ret_width is its width in columns. */
static size_t rune_show(FILE *out, const char *p, size_t n, size_t *ret_width)
{
	uint32_t rune;
	size_t length = utf8_decode(p, n, &rune);

	if (!length || (!rune_printable(rune) && rune != '\t')) {
		*ret_width = (size_t)fprintf(out, "\\x%02x", (unsigned char)*p);
		return 1;
	}
	*ret_width = 1;
	if (rune == '\t')
		fputc(' ', out);
	else
		fwrite(p, 1, length, out);
	return length;
}

/* Prints the line, and a caret under the column. If the line is longer than the margin, prints the part around the column. */
static void line_show(FILE *out, const char *p, size_t n, unsigned column)
{
	unsigned first = column > MARGIN - 16 ? column - (MARGIN - 16) + 1 : 1, now = 1;
	size_t at = 0, shown, caret, width;
	uint32_t rune;

	for (; now < first && at < n; now++) {
		width = utf8_decode(p + at, n - at, &rune);
		at += width ? width : 1;
	}
	fputs(at ? "  ..." : "  ", out);
	shown = caret = at ? 3 : 0;
	for (; at < n && shown < MARGIN; now++) {
		at += rune_show(out, p + at, n - at, &width);
		shown += width;
		if (now < column)
			caret = shown;
	}
	fprintf(out, "%s\n  %*s^\n", at < n ? "..." : "", (int)caret, "");
}

static char *__attribute__((format(printf, 4, 0)))
message_render(enum grade grade, const struct conf_source *s, struct source_place place, const char *format, va_list args)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		abort();
	fputs(s->label, out);
	if (place.line)
		fprintf(out, ":%u:%u", place.line, place.column);
	fputs(grade == GRADE_WARNING ? ": warning: " : ": error: ", out);
	vfprintf(out, format, args);
	fputc('\n', out);
	if (place.line && grade != GRADE_SECRET) {
		const char *line = source_line(s, place.line, &n);

		line_show(out, line, n, place.column);
	}
	if (fclose(out))
		abort();
	return text;
}

static bool message_before(const struct conf_message *a, const struct conf_message *b)
{
	if (a->order != b->order)
		return a->order < b->order;
	if (a->place.line != b->place.line)
		return a->place.line < b->place.line;
	return a->place.column < b->place.column;
}

void report_add(struct conf_report *r, enum grade grade, const struct conf_source *s, struct source_place place, const char *format, ...)
{
	struct conf_message *m, **at = &r->first;
	va_list args;

	*(grade == GRADE_WARNING ? &r->warnings : &r->errors) += 1;
	if (!r->out || r->errors + r->warnings > MESSAGES_MAX)
		return;
	m = conf_alloc(sizeof(*m));
	m->order = s->order;
	m->place = place;
	va_start(args, format);
	m->text = message_render(grade, s, place, format, args);
	va_end(args);
	while (*at && !message_before(m, *at))
		at = &(*at)->next;
	m->next = *at;
	*at = m;
}

void conf_report_print(struct conf_report *r)
{
	while (r->first) {
		struct conf_message *m = r->first;

		fputs(m->text, r->out);
		r->first = m->next;
		free(m->text);
		free(m);
	}
	if (r->out && r->errors + r->warnings > MESSAGES_MAX)
		fprintf(r->out, "redlockd: %u more like these are not shown\n", r->errors + r->warnings - MESSAGES_MAX);
}
