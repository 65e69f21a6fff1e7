/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the list of rules, and the groups of names. It continues after a mistake, so that one run reports all of them. A rule with a mistake could be
 * one that denies, so one mistake makes the whole list invalid.
 */
#include "conf/internal.h"

#include "proto/proto.h"
#include "proto/text.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define RIGHTS      "lock|look|admin"
#define RULES_MOST  1000
#define NUMBER_MOST ((int64_t)UINT32_MAX - 1) /* (uid_t)-1 belongs to nobody */

#define GROUPS_MOST 64
#define LABEL_MOST  64 /* bytes */

#define PATTERN_MOST 512 /* bytes, also of a condition */

enum word { WORD_UID, WORD_GROUP, WORD_USER, WORD_CERT, WORD_NAMES, WORD_ALLOW, WORDS };

static const char *const word_text[WORDS] = {"uid", "group", "user", "cert", "names", "allow"};

static char **rule_text(struct conf_rule *rule, enum word word)
{
	char **const field[WORD_ALLOW] = {&rule->uid, &rule->group, &rule->user, &rule->cert, &rule->names};

	return field[word];
}

/* Whether text consists of digits, which always mean a number. If so, *ret_number is that number, or negative if it is too large. */
static bool is_number(const char *text, int64_t *ret_number)
{
	bool digits = *text && !text[strspn(text, "0123456789")];

	if (digits)
		*ret_number = count_parse(span_of(text), NUMBER_MOST);
	return digits;
}

static bool rules_user(const char *text, int64_t *ret_number)
{
	const struct passwd *p;

	if (is_number(text, ret_number))
		return *ret_number >= 0;
	p = getpwnam(text);
	if (p)
		*ret_number = (int64_t)p->pw_uid;
	return p != NULL;
}

bool rules_group(const char *text, int64_t *ret_number)
{
	const struct group *g;

	if (is_number(text, ret_number))
		return *ret_number >= 0;
	g = getgrnam(text);
	if (g)
		*ret_number = (int64_t)g->gr_gid;
	return g != NULL;
}

/* Reads text of 1 to PATTERN_MOST bytes. NULL: it has complained. */
static const char *pattern_text(struct yaml *y, const yaml_node_t *node, const char *what)
{
	char rule[128 + LABEL_MOST];
	const char *text;

	snprintf(rule, sizeof(rule), "%s is a text of 1 to %d bytes", what, PATTERN_MOST);
	text = yaml_text(y, node, rule);
	if (text && *text && strlen(text) <= PATTERN_MOST)
		return text;
	if (text)
		complain(y, node, "%s", rule);
	return NULL;
}

static void condition_read(struct yaml *y, const yaml_node_t *node, struct conf_rule *rule, enum word word)
{
	const char *text = pattern_text(y, node, word_text[word]);
	char show[SHOW_MAX];

	if (!text)
		return;
	if (word == WORD_UID && !rules_user(text, &rule->uid_n))
		complain(y, node, "this host has no user '%s'", text_show(text, show));
	if (word == WORD_GROUP && !rules_group(text, &rule->group_n))
		complain(y, node, "this host has no group '%s'", text_show(text, show));
	*rule_text(rule, word) = conf_strdup(text);
}

static void rights_read(struct yaml *y, const yaml_node_t *list, struct conf_rule *rule)
{
	char show[SHOW_MAX];

	if (!yaml_is(y, list, YAML_SEQUENCE_NODE, "allow is a list, as in allow: [lock, look]"))
		return;
	for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
		const yaml_node_t *node = yaml_node(y, *item);
		const char *text = yaml_text(y, node, "a rule allows lock, look and admin");
		int right = text ? alternative_find(RIGHTS, text) : 0;

		if (right < 0)
			complain(y, node, "a rule allows lock, look and admin, not '%s'", text_show(text, show));
		else
			rule->allow |= 1u << right;
	}
}

static void rule_read(struct yaml *y, const yaml_node_t *node, struct conf_rule *rule)
{
	yaml_node_t *value[WORDS];

	rule->line = yaml_place(y, node).line;
	if (!yaml_is(y, node, YAML_MAPPING_NODE, "a rule is a mapping, as in {uid: www-data, names: \"web/*\", allow: [lock, look]}"))
		return;
	yaml_fields(y, node, word_text, WORDS, "a rule has uid, group, user, cert, names and allow, each once", value);
	for (enum word word = 0; word < WORD_ALLOW; word++)
		if (value[word])
			condition_read(y, value[word], rule, word);
	if (value[WORD_ALLOW])
		rights_read(y, value[WORD_ALLOW], rule);
	else
		complain(y, node, "the rule does not say what it allows, as in allow: [lock, look]; a rule that denies has allow: []");
}

struct conf_rules *rules_read(struct yaml *y, const yaml_node_t *list)
{
	size_t count = (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
	unsigned before = y->report->errors;
	struct conf_rules *rules;

	if (count == 0)
		complain(y, list, "without a rule nobody could do anything; leave the key out, and everybody may lock and look");
	if (count > RULES_MOST)
		complain(y, list, "at most %d rules", RULES_MOST);
	if (count == 0 || count > RULES_MOST)
		return NULL;
	rules = conf_alloc(sizeof(*rules) + count * sizeof(rules->rule[0]));
	for (rules->count = 0; rules->count < count; rules->count++)
		rule_read(y, yaml_node(y, list->data.sequence.items.start[rules->count]), &rules->rule[rules->count]);
	if (y->report->errors == before)
		return rules;
	rules_free(rules);
	return NULL;
}

void rules_free(struct conf_rules *rules)
{
	for (size_t i = 0; rules && i < rules->count; i++)
		for (enum word word = 0; word < WORD_ALLOW; word++)
			free(*rule_text(&rules->rule[i], word));
	free(rules);
}

static bool has_label(const char *groups, const char *label)
{
	size_t n = strlen(label);

	for (const char *at = groups; *at; at += strcspn(at, "\n"), at += *at == '\n')
		if (!strncmp(at, label, n) && at[n] == '\t')
			return true;
	return false;
}

/* Reads the label of a group. NULL: it has complained. */
static const char *label_read(struct yaml *y, const yaml_node_t *node, const char *groups)
{
	const char *text = yaml_text(y, node, "a label is a word");
	char show[SHOW_MAX];

	if (!text)
		return NULL;
	if (!*text || strlen(text) > LABEL_MOST || text[strspn(text, WORD_LETTERS)])
		complain(y, node, "a label has 1 to %d letters, digits, _, - and ., not '%s'", LABEL_MOST, text_show(text, show));
	else if (has_label(groups, text))
		complain(y, node, "two groups are called '%s'", text);
	else
		return text;
	return NULL;
}

/* Reads the pattern of a label. NULL: it has complained. */
static const char *pattern_read(struct yaml *y, const yaml_node_t *node, const char *label)
{
	char what[64 + LABEL_MOST], show[SHOW_MAX];
	const char *text, *star;

	snprintf(what, sizeof(what), "metrics.groups: the pattern of '%s'", label);
	text = pattern_text(y, node, what);
	star = text ? strchr(text, '*') : NULL;
	if (!star || !star[1])
		return text;
	complain(y, node, "%s is a name, or a beginning of names and one * at its end, as in \"orders/*\", not '%s'", what, text_show(text, show));
	return NULL;
}

char *groups_read(struct yaml *y, const yaml_node_t *mapping)
{
	yaml_node_pair_t *pair = mapping->data.mapping.pairs.start, *end = mapping->data.mapping.pairs.top;
	char *groups = conf_strdup("");

	if (pair == end)
		complain(y, mapping, "metrics.groups has no group; leave the key out if there is none");
	if (end - pair > GROUPS_MOST)
		complain(y, mapping, "at most %d groups", GROUPS_MOST);
	for (; pair < end; pair++) {
		const char *label = label_read(y, yaml_node(y, pair->key), groups);
		const char *pattern = label ? pattern_read(y, yaml_node(y, pair->value), label) : NULL;
		char *longer = NULL;

		if (!pattern)
			continue;
		if (asprintf(&longer, "%s%s%s\t%s", groups, *groups ? "\n" : "", label, pattern) < 0)
			abort();
		free(groups);
		groups = longer;
	}
	return groups;
}
