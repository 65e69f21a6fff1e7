/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words and characters: spelling distance, alternatives "a|b|c", UTF-8, texts as YAML has them. No state; internal to conf.
 */
#ifndef CONF_WORDS_H
#define CONF_WORDS_H

#include "proto/lookalike.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Damerau-Levenshtein distance (optimal string alignment), ignoring ASCII case. A result above 2 only means: more than 2. A word longer
 * than 64 bytes is more than 2 away from every word.
 */
unsigned word_distance(const char *a, const char *b);
/* Whether the distance is at most 2, and at most a third of the length of typed. */
bool word_near(const char *typed, const char *meant, unsigned *ret_distance);

/* The index of the word in "a|b|c", or -1. */
int alternative_find(const char *alternatives, const char *word);
/* Copies the alternative of that index; returns its length, 0 after the last. */
size_t alternative_get(const char *alternatives, unsigned index, char *out, size_t size);

/* The code point at p and its length in bytes; length 0 if it is no valid UTF-8, or n is 0. */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_rune);
/* Number of characters of valid UTF-8. */
size_t utf8_count(const char *p, size_t n);
/* Whether a file or a value may contain it unescaped: no control character, no line break of YAML. */
bool rune_printable(uint32_t rune);

/*
 * The first character that looks like one of ASCII and is none, as word processors put it: a blank anywhere, a quote or a hyphen at the beginning or the
 * end; or any of them anywhere. Returns where it is; n: there is none.
 */
size_t lookalike_find(const char *text, size_t n, bool anywhere, uint32_t *ret_rune);
#define LOOKALIKE_FLAW "U+%04X looks like %s, and is none: type it anew"

#define SHOW_MAX 96
/* The text for a message: unprintable bytes escaped, a long text cut with "...". Returns out. */
const char *text_show(const char *text, char out[SHOW_MAX]);
/* Whether the text is valid UTF-8, and all of it is printable. */
bool text_printable(const char *text, size_t n);
/* Prints a text as YAML, unquoted if that is safe. */
void value_print_text(const char *text, FILE *out);

#endif
