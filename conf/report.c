/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages with a place. Each is formatted when it is found, since its source may be freed before it is printed, and sorted by
 * source, line and column. Only printable characters are printed, whatever the source contains.
 */
#include "conf/report.h"

#include "conf/words.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGES_MAX 200 /* messages that are printed; all are counted */
#define MARGIN       96  /* columns of a source line that are printed */

struct conf_message {
	struct conf_message *next;
	unsigned order;
	struct source_place place;
	char *text;
};

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

/* The first byte to print, so that the caret is in the margin. */
static size_t line_start(const char *p, size_t n, unsigned column)
{
	size_t skip = column > MARGIN - 16 ? column - (MARGIN - 16) : 0, at = 0;
	uint32_t rune;

	for (; skip && at < n; skip--) {
		size_t length = utf8_decode(p + at, n - at, &rune);

		at += length ? length : 1;
	}
	return at;
}

/* Prints the line, and a caret under the column. A byte that is not UTF-8 counts as one character. */
static void line_show(FILE *out, const char *p, size_t n, unsigned column)
{
	size_t at = line_start(p, n, column), shown = at ? 3 : 0, caret = 0, width = 0;
	unsigned now = column > MARGIN - 16 ? column - (MARGIN - 16) + 1 : 1;

	fputs(at ? "  ..." : "  ", out);
	for (; at < n && shown < MARGIN; now++) {
		if (now == column)
			caret = shown + 1;
		at += rune_show(out, p + at, n - at, &width);
		shown += width;
	}
	fprintf(out, "%s\n  %*s^\n", at < n ? "..." : "", (int)(caret ? caret - 1 : shown), "");
}

static char *__attribute__((format(printf, 5, 0))) message_render(const struct conf_source *s, struct source_place place,
								  const char *kind, bool show, const char *format, va_list args)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		abort();
	fputs(s->label, out);
	if (place.line)
		fprintf(out, ":%u:%u", place.line, place.column);
	fprintf(out, ": %s: ", kind);
	vfprintf(out, format, args);
	fputc('\n', out);
	if (place.line && show) {
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

static void __attribute__((format(printf, 6, 0)))
report_add(struct conf_report *r, const struct conf_source *s, struct source_place place, const char *kind, bool show,
	   const char *format, va_list args)
{
	struct conf_message *m, **at = &r->first;

	if (!r->out || r->errors + r->warnings > MESSAGES_MAX)
		return;
	m = conf_alloc(sizeof(*m));
	m->order = s->order;
	m->place = place;
	m->text = message_render(s, place, kind, show, format, args);
	while (*at && !message_before(m, *at))
		at = &(*at)->next;
	m->next = *at;
	*at = m;
}

void report_error(struct conf_report *r, const struct conf_source *s, struct source_place place, const char *format, ...)
{
	va_list args;

	r->errors++;
	va_start(args, format);
	report_add(r, s, place, "error", true, format, args);
	va_end(args);
}

void report_warning(struct conf_report *r, const struct conf_source *s, struct source_place place, const char *format, ...)
{
	va_list args;

	r->warnings++;
	va_start(args, format);
	report_add(r, s, place, "warning", true, format, args);
	va_end(args);
}

void report_secret(struct conf_report *r, const struct conf_source *s, struct source_place place, const char *format, ...)
{
	va_list args;

	r->errors++;
	va_start(args, format);
	report_add(r, s, place, "error", false, format, args);
	va_end(args);
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
