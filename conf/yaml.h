/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One YAML document as a tree, with the place of each node, and the questions about a node that readers of keys need. A reader compares
 * report->errors before and after, to know whether a part of the tree was right. Internal to conf.
 */
#ifndef CONF_YAML_H
#define CONF_YAML_H

#include "conf/report.h"

#include <yaml.h>

struct yaml {
	yaml_document_t document;
	struct conf_report *report;
	const struct conf_source *source;
	size_t from; /* characters of the first line before the parsed text */
};

/*
 * Parses source->text[from..). False: it is not YAML, or more than one document, and this was reported. Then nothing can be read from it. The root is
 * NULL if the text is empty. The caller closes it in both cases.
 */
bool yaml_open(struct yaml *y, struct conf_report *report, const struct conf_source *source, size_t from);
void yaml_close(struct yaml *y);
yaml_node_t *yaml_root(struct yaml *y);
yaml_node_t *yaml_node(struct yaml *y, int index); /* for an item of a list, or for a pair */

struct source_place yaml_place(const struct yaml *y, const yaml_node_t *node);
bool yaml_is_null(const yaml_node_t *node); /* empty, ~ or null */
const char *yaml_kind(const yaml_node_t *node); /* "a list", "a mapping", "a single value", "no value": for messages */

#define complain(y, node, ...) report_add((y)->report, GRADE_ERROR, (y)->source, yaml_place((y), (node)), __VA_ARGS__)

/* Whether the node is of this type. If not, an error says what it must be: "rule; this is a list". */
bool yaml_is(struct yaml *y, const yaml_node_t *node, yaml_node_type_t type, const char *rule);
/*
 * Returns the text of a single value. NULL: it is not one, or contains a forbidden character, and this was reported. rule: what it must be. The text
 * has no control character and no tag, and is one line.
 */
const char *yaml_text(struct yaml *y, const yaml_node_t *node, const char *rule);
/*
 * Finds the values of a mapping with these words as keys. ret_value[i] belongs to word[i], and is NULL if that is missing. Reports any other key, and
 * a key that comes twice, with the rule.
 */
void yaml_fields(struct yaml *y, const yaml_node_t *mapping, const char *const *word, size_t words, const char *rule, yaml_node_t **ret_value);
/* Returns the node as one line of YAML. The caller frees it. Only for a tree that was read without a mistake, because its depth is then limited. */
char *yaml_line(struct yaml *y, const yaml_node_t *node);

#endif
