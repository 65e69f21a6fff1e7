/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of rules: read, compared, printed. Internal to conf.
 */
#ifndef CONF_RULES_H
#define CONF_RULES_H

#include "conf/conf.h"
#include "conf/yaml.h"

#define RULES_MOST 1000

/*
 * The present event begins the list: reads it to its end. The caller frees the result; NULL: a mistake was reported. The names of users and groups become
 * numbers here, which asks the system's tables and may block.
 */
struct conf_rules *rules_read(struct yaml *y);
void rules_free(struct conf_rules *rules); /* NULL is allowed */

bool rules_equal(const struct conf_rules *a, const struct conf_rules *b); /* the same rules, wherever they are written */
void rules_print(const struct conf_rules *rules, FILE *out); /* in one line */

/* The number of a group, by its name or number. False: this host has none of that name. */
bool rules_group(const char *text, int64_t *ret_number);

#endif
