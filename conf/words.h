/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words and characters: spelling distance, alternatives "a|b|c", UTF-8. Pure; internal to conf.
 */
#ifndef CONF_WORDS_H
#define CONF_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Damerau-Levenshtein distance (optimal string alignment), ignoring ASCII case; beyond 2 it is only known to be more than 2. Words longer
 * than 64 bytes are far from everything.
 */
unsigned word_distance(const char *a, const char *b);
/* At most 2 edits, and at most a third of the length of what was typed. */
bool word_near(const char *typed, const char *meant, unsigned *ret_distance);

/* The index of the word in "a|b|c", or -1. */
int alternative_find(const char *alternatives, const char *word);
/* Copies the alternative of that index; its length, or 0 beyond the last. */
size_t alternative_get(const char *alternatives, unsigned index, char *out, size_t size);

/* The code point at p and its length in bytes; length 0 when it is no valid UTF-8 (or n is 0). */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_rune);
/* Characters of valid UTF-8. */
size_t utf8_count(const char *p, size_t n);
/* What may stand in a file or a value as it is: no control character and no line break of YAML. */
bool rune_printable(uint32_t rune);

#define SHOW_MAX 96
/* The text as it may go into a message: unprintable bytes escaped, cut with "..." when long. Returns out. */
const char *text_show(const char *text, char out[SHOW_MAX]);
/* Valid UTF-8 and nothing that rune_printable refuses. */
bool text_printable(const char *text, size_t n);

#endif
