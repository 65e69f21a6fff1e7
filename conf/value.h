/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value of one key: read from a scalar, compared, written as the file would say it. Internal to conf.
 */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf/address.h"
#include "conf/schema.h"

/*
 * Puts the value of text[0..n) into its field, or leaves the field alone and says why not: 0, VALUE_BAD or VALUE_SECRET. Lists are
 * taken by value_set_nodes. *ret_written is set for what should be printed the way it was written.
 */
int value_parse(struct conf *c, const struct setting *s, const char *text, size_t n, bool *ret_written, char why[WHY_MAX]);
/* Takes the addresses over. */
void value_set_nodes(struct conf *c, struct conf_address *node, size_t count);
void value_release(struct conf *c, const struct setting *s);

bool value_is_set(const struct conf *c, const struct setting *s);
bool value_equal(const struct conf *a, const struct conf *b, const struct setting *s);
/* Whether a reload from now to fresh puts this key into effect: it is LIVE, and agrees with what needs a restart. */
bool value_is_live(const struct conf *now, const struct conf *fresh, const struct setting *s);
/* As the file would say it; of a value that is not set: what happens then, in parentheses. */
void value_print(const struct conf *c, const struct setting *s, FILE *out);
/* A text as YAML, plain where that is safe. */
void value_print_text(const char *text, FILE *out);

#endif
