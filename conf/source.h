/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of one file or of one --set. It is kept as long as the configuration, so that later messages can show its lines.
 * Internal to conf.
 */
#ifndef CONF_SOURCE_H
#define CONF_SOURCE_H

#include <stddef.h>

#define SOURCE_MAX      ((size_t)1024 * 1024) /* bytes of a file */
#define SOURCE_LINE_MAX 4096          /* bytes of a line */

struct source_place {
	unsigned line, column; /* from 1; columns are characters */
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
/*
 * Finds the first flaw of the text: bytes that are not UTF-8, control characters, an indent with a tab, a line or a text that is too
 * long. Returns a message or NULL. *ret_usable: how many bytes of whole lines before the flaw can be parsed.
 */
const char *source_flaw(const struct conf_source *s, struct source_place *ret_place, size_t *ret_usable);

/* strdup, strndup, calloc and realloc that end the process if memory is exhausted. */
char *conf_strdup(const char *text);
char *conf_strndup(const char *text, size_t n);
void *conf_alloc(size_t size);

#endif
