/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of one file or of one --set, kept for as long as the configuration, so that later checks can still show the line that they mean.
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
	char *label; /* what messages and origins call it */
	char *text;
	size_t n;
	unsigned order; /* in which it was read */
};

/* Copies both, puts it first into the list; a byte order mark is left out. */
struct conf_source *source_add(struct conf_source **list, const char *label, const char *text, size_t n);
void source_free(struct conf_source *list);

/* The line of that number, without its end; empty beyond the last. */
const char *source_line(const struct conf_source *s, unsigned line, size_t *ret_n);
/*
 * The first thing in the text that no configuration may hold: bytes that are not UTF-8, control characters, an indent with a tab, a line
 * or a text that is too long. Returns why, or NULL, and how many bytes of whole lines before it are fit to be read.
 */
const char *source_flaw(const struct conf_source *s, struct source_place *ret_place, size_t *ret_usable);

/* strdup, calloc and realloc that end the process when memory does. */
char *conf_strdup(const char *text);
char *conf_strndup(const char *text, size_t n);
void *conf_alloc(size_t size);

#endif
