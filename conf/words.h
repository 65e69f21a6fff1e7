/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words and characters: alternatives "a|b|c", UTF-8, text as YAML. No state; internal to conf.
 */
#ifndef CONF_WORDS_H
#define CONF_WORDS_H

#include "proto/lookalike.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WORD_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-" /* for hosts, names of nodes, and labels */

/* calloc, strdup and strndup that end the process if memory is exhausted. */
void *conf_alloc(size_t size);
char *conf_strdup(const char *text);
char *conf_strndup(const char *text, size_t n);

/* The index of the word in "a|b|c", or -1. ASCII case is ignored. */
int alternative_find(const char *alternatives, const char *word);

/* The code point at p and its length in bytes; length 0 if it is no valid UTF-8, or n is 0. */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_rune);
/* Number of characters of valid UTF-8. */
size_t utf8_count(const char *p, size_t n);
/* Whether a file or a value may contain it unescaped. Control characters and line breaks of YAML are not allowed. */
bool rune_printable(uint32_t rune);

/*
 * Finds the first character that only looks like an ASCII one, as word processors insert it. Finds blanks anywhere; quotes and hyphens only at the
 * beginning or the end, or anywhere if `anywhere` is set. Returns its index; n: there is none.
 */
size_t lookalike_find(const char *text, size_t n, bool anywhere, uint32_t *ret_rune);

#define SHOW_MAX 96
/* Makes the text fit for a message: escapes unprintable bytes, and cuts a long text with "...". Returns out. */
const char *text_show(const char *text, char out[SHOW_MAX]);
/* Whether the text is valid UTF-8, and all of it is printable. */
bool text_printable(const char *text, size_t n);
/* Prints a text as YAML, unquoted if that is safe. */
void text_print(const char *text, FILE *out);
char *text_line(const char *text); /* the same as a string, which the caller frees */

#endif
