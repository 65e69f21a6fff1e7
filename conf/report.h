/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of files and of --set, and messages about it. Messages are collected when they are found, and printed in the order of the text. The text
 * is kept as long as the configuration, so that later messages can show its lines. Internal to conf.
 */
#ifndef CONF_REPORT_H
#define CONF_REPORT_H

#include "conf/conf.h"

#define SOURCE_MAX ((size_t)1024 * 1024) /* bytes of a file */

struct source_place {
	unsigned line, column; /* from 1; columns are characters. line 0: the source as a whole */
};

struct conf_source {
	struct conf_source *next;
	char *label; /* the name in messages and origins */
	char *text;
	size_t n;
	unsigned order; /* counts the sources as they are read */
};

/* Copies label and text, without a byte order mark. Puts the source at the front of the list, which owns it. */
struct conf_source *source_add(struct conf_source **list, const char *label, const char *text, size_t n);
void source_free(struct conf_source *list);

/* Returns the line with that number, without its end; empty after the last line. */
const char *source_line(const struct conf_source *s, unsigned line, size_t *ret_n);
/*
 * Returns the first flaw of the text; NULL: there is none. Flaws: it is not UTF-8, has control characters, indents with a tab, has many directives,
 * or is too long.
 */
const char *source_flaw(const struct conf_source *s, struct source_place *ret_place);

/* GRADE_SECRET is an error whose source line is not printed, because it may contain a password. */
enum grade { GRADE_ERROR, GRADE_WARNING, GRADE_SECRET };
void report_add(struct conf_report *r, enum grade grade, const struct conf_source *s, struct source_place place, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
#define report_error(r, s, place, ...) report_add((r), GRADE_ERROR, (s), (place), __VA_ARGS__)

#endif
