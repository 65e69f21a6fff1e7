/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The groups of names of metrics.groups, as one text: "label TAB pattern", with a newline between two. Neither has a control character. Internal to conf.
 */
#ifndef CONF_GROUPS_H
#define CONF_GROUPS_H

#include "conf/schema.h"
#include "conf/yaml.h"

/* The present event begins the mapping: reads it to its end. The caller frees the result; NULL: a mistake was reported. */
char *groups_read(struct yaml *y, const struct setting *s);
void groups_print(const char *groups, FILE *out); /* in one line */

#endif
