/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See rules.h. After a mistake reading goes on, so one run reports all of them. A rule with a mistake could be the one that denies, so a list with a mistake
 * is no list.
 */
#include "conf/rules.h"

#include "conf/number.h"
#include "conf/source.h"
#include "conf/words.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define RIGHTS "lock|look|admin"
#define CONDITION_MOST 512 /* bytes */
#define NUMBER_MOST ((uint64_t)UINT32_MAX - 1) /* (uid_t)-1 is nobody's */

enum word { WORD_UID, WORD_GROUP, WORD_USER, WORD_CERT, WORD_NAMES, WORD_ALLOW, WORDS };

static const char *const word_text[WORDS] = {"uid", "group", "user", "cert", "names", "allow"};

/* The rules read so far. */
struct rules {
	struct yaml *yaml;
	struct conf_rules *list;
	size_t cap;
	bool bad;
};

#define complain(r, place, ...) ((r)->bad = true, report_error((r)->yaml->report, (r)->yaml->source, (place), __VA_ARGS__))

static char **rule_text(struct conf_rule *rule, enum word word)
{
	switch (word) {
	case WORD_UID:
		return &rule->uid;
	case WORD_GROUP:
		return &rule->group;
	case WORD_USER:
		return &rule->user;
	case WORD_CERT:
		return &rule->cert;
	default:
		return &rule->names;
	}
}

/* A number stands for itself. */
static bool user_number(const char *text, int64_t *ret_number)
{
	const struct passwd *p;
	uint64_t number;

	if (!number_count(text, &number)) {
		*ret_number = (int64_t)number;
		return number <= NUMBER_MOST;
	}
	p = getpwnam(text);
	if (p)
		*ret_number = (int64_t)p->pw_uid;
	return p != NULL;
}

bool rules_group(const char *text, int64_t *ret_number)
{
	const struct group *g;
	uint64_t number;

	if (!number_count(text, &number)) {
		*ret_number = (int64_t)number;
		return number <= NUMBER_MOST;
	}
	g = getgrnam(text);
	if (g)
		*ret_number = (int64_t)g->gr_gid;
	return g != NULL;
}

static void condition_take(struct rules *r, struct conf_rule *rule, enum word word)
{
	const yaml_event_t *e = &r->yaml->event;
	const char *text = (const char *)e->data.scalar.value;
	struct source_place place = yaml_place(r->yaml);
	char show[SHOW_MAX];

	if (yaml_is_continued(r->yaml)) { /* reported already */
		r->bad = true;
		return;
	}
	if (yaml_is_null(r->yaml) || !*text || strlen(text) > CONDITION_MOST || !text_printable(text, e->data.scalar.length)) {
		complain(r, place, "%s is a text of 1 to %d bytes", word_text[word], CONDITION_MOST);
		return;
	}
	if (word == WORD_UID && !user_number(text, &rule->uid_n))
		complain(r, place, "this host has no user '%s'", text_show(text, show));
	if (word == WORD_GROUP && !rules_group(text, &rule->group_n))
		complain(r, place, "this host has no group '%s'", text_show(text, show));
	*rule_text(rule, word) = conf_strdup(text);
}

static void right_take(struct rules *r, struct conf_rule *rule)
{
	const char *text = (const char *)r->yaml->event.data.scalar.value;
	int right = r->yaml->event.type == YAML_SCALAR_EVENT ? alternative_find(RIGHTS, text) : -1;
	char show[SHOW_MAX];

	if (right >= 0)
		rule->allow |= 1u << right;
	else if (r->yaml->event.type == YAML_SCALAR_EVENT)
		complain(r, yaml_place(r->yaml), "a rule allows lock, look and admin, not '%s'", text_show(text, show));
	else
		complain(r, yaml_place(r->yaml), "a rule allows lock, look and admin; this is %s", yaml_kind(r->yaml));
	if (right < 0)
		yaml_skip(r->yaml);
}

static void rights_take(struct rules *r, struct conf_rule *rule)
{
	if (r->yaml->event.type != YAML_SEQUENCE_START_EVENT) {
		complain(r, yaml_place(r->yaml), "allow is a list, as in allow: [lock, look]; this is %s", yaml_kind(r->yaml));
		yaml_skip(r->yaml);
		return;
	}
	while (yaml_next(r->yaml) != YAML_SEQUENCE_END_EVENT && !r->yaml->over)
		right_take(r, rule);
}

static int word_find(const struct yaml *y)
{
	const yaml_event_t *e = &y->event;

	for (int i = 0; e->type == YAML_SCALAR_EVENT && i < WORDS; i++)
		if (!strcmp(word_text[i], (const char *)e->data.scalar.value) && strlen(word_text[i]) == e->data.scalar.length)
			return i;
	return -1;
}

/* The present event is a key. */
static void pair_take(struct rules *r, struct conf_rule *rule, unsigned *met)
{
	int word = word_find(r->yaml);
	char show[SHOW_MAX];

	if (word < 0 || *met & 1u << word) {
		const char *text = r->yaml->event.type == YAML_SCALAR_EVENT ? (const char *)r->yaml->event.data.scalar.value : yaml_kind(r->yaml);

		complain(r, yaml_place(r->yaml), word < 0 ? "a rule has uid, group, user, cert, names and allow, not '%s'" : "a rule has only one '%s'",
			 text_show(text, show));
		yaml_skip(r->yaml);
		yaml_next(r->yaml);
		yaml_skip(r->yaml);
		return;
	}
	*met |= 1u << word;
	yaml_next(r->yaml);
	if (word == WORD_ALLOW) {
		rights_take(r, rule);
	} else if (r->yaml->event.type == YAML_SCALAR_EVENT) {
		condition_take(r, rule, (enum word)word);
	} else {
		complain(r, yaml_place(r->yaml), "%s is a single value; this is %s", word_text[word], yaml_kind(r->yaml));
		yaml_skip(r->yaml);
	}
}

static struct conf_rule *rules_add(struct rules *r)
{
	if (!r->list || r->list->count == r->cap) {
		size_t count = r->list ? r->list->count : 0;
		struct conf_rules *more = conf_alloc(sizeof(*more) + (2 * r->cap + 8) * sizeof(more->rule[0]));

		r->cap = 2 * r->cap + 8;
		if (count > 0)
			memcpy(more->rule, r->list->rule, count * sizeof(more->rule[0]));
		more->count = count;
		free(r->list);
		r->list = more;
	}
	return &r->list->rule[r->list->count++];
}

/* The present event begins a mapping. */
static void rule_take(struct rules *r)
{
	struct conf_rule *rule = rules_add(r);
	struct source_place place = yaml_place(r->yaml);
	unsigned met = 0;

	rule->line = place.line;
	while (yaml_next(r->yaml) != YAML_MAPPING_END_EVENT && !r->yaml->over)
		pair_take(r, rule, &met);
	if (!(met & 1u << WORD_ALLOW) && !r->yaml->over)
		complain(r, place, "the rule does not say what it allows, as in allow: [lock, look]; a rule that denies has allow: []");
}

struct conf_rules *rules_read(struct yaml *y)
{
	struct rules r = {.yaml = y};
	struct source_place start = yaml_place(y);

	while (yaml_next(y) != YAML_SEQUENCE_END_EVENT && !y->over) {
		if (r.list && r.list->count == RULES_MOST) {
			complain(&r, yaml_place(y), "at most %d rules", RULES_MOST);
			yaml_skip(y);
		} else if (y->event.type == YAML_MAPPING_START_EVENT) {
			rule_take(&r);
		} else {
			complain(&r, yaml_place(y), "a rule is a mapping, as in {uid: www-data, names: \"web/*\", allow: [lock, look]}; this is %s",
				 yaml_kind(y));
			yaml_skip(y);
		}
	}
	if (!r.list && !r.bad && !y->over)
		complain(&r, start, "without a rule nobody could do anything; leave the key out, and everybody may lock and look");
	if (r.bad || y->over) {
		rules_free(r.list);
		return NULL;
	}
	return r.list;
}

void rules_free(struct conf_rules *rules)
{
	for (size_t i = 0; rules && i < rules->count; i++)
		for (enum word word = 0; word < WORD_ALLOW; word++)
			free(*rule_text(&rules->rule[i], word));
	free(rules);
}

static bool text_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool rule_equal(const struct conf_rule *a, const struct conf_rule *b)
{
	return text_same(a->uid, b->uid) && text_same(a->group, b->group) && a->uid_n == b->uid_n && a->group_n == b->group_n &&
	       text_same(a->user, b->user) && text_same(a->cert, b->cert) && text_same(a->names, b->names) && a->allow == b->allow;
}

bool rules_equal(const struct conf_rules *a, const struct conf_rules *b)
{
	if (!a || !b || a->count != b->count)
		return a == b;
	for (size_t i = 0; i < a->count; i++)
		if (!rule_equal(&a->rule[i], &b->rule[i]))
			return false;
	return true;
}

static void rule_print(const struct conf_rule *rule, FILE *out)
{
	struct conf_rule copy = *rule;
	const char *comma = "";
	char right[16];

	fputc('{', out);
	for (enum word word = 0; word < WORD_ALLOW; word++) {
		const char *text = *rule_text(&copy, word);

		if (!text)
			continue;
		fprintf(out, "%s: ", word_text[word]);
		value_print_text(text, out);
		fputs(", ", out);
	}
	fputs("allow: [", out);
	for (unsigned i = 0; alternative_get(RIGHTS, i, right, sizeof(right)); i++) {
		if (!(rule->allow & 1u << i))
			continue;
		fprintf(out, "%s%s", comma, right);
		comma = ", ";
	}
	fputs("]}", out);
}

void rules_print(const struct conf_rules *rules, FILE *out)
{
	fputc('[', out);
	for (size_t i = 0; i < rules->count; i++) {
		fputs(i ? ", " : "", out);
		rule_print(&rules->rule[i], out);
	}
	fputc(']', out);
}
