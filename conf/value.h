/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value of one key: read from a scalar, compared, printed as a file would have it. Internal to conf.
 */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf/address.h"
#include "conf/schema.h"

/*
 * Sets the field of s from text[0..n). 0; or VALUE_BAD or VALUE_SECRET with a reason, and the field unchanged. Lists go through
 * value_set_nodes. *ret_written: the value should be printed as it was written.
 */
int value_parse(struct conf *c, const struct setting *s, const char *text, size_t n, bool *ret_written, char why[WHY_MAX]);
/*
 * --set redis.key_prefix=q3: is meant as a text, though YAML would take the colon at its end, or before a blank, for a mapping. What begins with
 * a character that means something to YAML, such as a quote, is read as YAML.
 */
bool value_is_bare(const struct setting *s, const char *text, size_t n);
/* Takes ownership of the addresses. */
void value_set_nodes(struct conf *c, struct conf_address *node, size_t count);
void value_release(struct conf *c, const struct setting *s);

bool value_is_set(const struct conf *c, const struct setting *s);
bool value_equal(const struct conf *a, const struct conf *b, const struct setting *s);
/* Whether a reload from now to fresh puts this key into effect: the key is LIVE, and fresh fits the values of now that need a restart. */
bool value_is_live(const struct conf *now, const struct conf *fresh, const struct setting *s);
/* Prints the value as a file would have it; without a value: what happens then, in parentheses. */
void value_print(const struct conf *c, const struct setting *s, FILE *out);

#endif
