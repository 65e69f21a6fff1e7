/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of files and of --set, and messages about them: collected as they are found, printed in the order of the texts. A text is kept as long as the
 * configuration, so that later messages can show its lines. Internal to conf.
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
	char *label; /* its name in messages and origins */
	char *text;
	size_t n;
	unsigned order; /* order of reading */
};

/* Copies label and text, without a byte order mark, and puts the source first into the list, which owns it. */
struct conf_source *source_add(struct conf_source **list, const char *label, const char *text, size_t n);
void source_free(struct conf_source *list);

/* The line of that number, without its end; empty after the last line. */
const char *source_line(const struct conf_source *s, unsigned line, size_t *ret_n);
/* The first flaw of the text: bytes that are not UTF-8, control characters, an indent with a tab, many directives, a text too long. NULL: there is none. */
const char *source_flaw(const struct conf_source *s, struct source_place *ret_place);

/* SECRET is an error whose source line is not printed, because it may contain a password. */
enum grade { GRADE_ERROR, GRADE_WARNING, GRADE_SECRET };
void report_add(struct conf_report *r, enum grade grade, const struct conf_source *s, struct source_place place, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
#define report_error(r, s, place, ...) report_add((r), GRADE_ERROR, (s), (place), __VA_ARGS__)

#endif
