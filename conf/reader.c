/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads YAML into the fields of the table. After a mistake reading goes on, so one run reports all mistakes. A refused value marks its key
 * bad, and later checks leave that key out.
 */
#include "conf/reader.h"

#include "conf/groups.h"
#include "conf/list.h"
#include "conf/rules.h"
#include "conf/value.h"
#include "conf/words.h"
#include "conf/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct yaml yaml;
	struct conf *conf;
	unsigned key_line[CONF_KEYS]; /* line of the key in this text; 0: not met yet */
	unsigned *section_line;       /* the same for sections */
	bool assignment;              /* for --set: the parsed text is a value without its key */
};

#define complain(r, place, ...) report_error((r)->yaml.report, (r)->yaml.source, (place), __VA_ARGS__)

static void origin_set(struct reader *r, const struct setting *s, struct source_place place, const char *written)
{
	struct conf_origin *o = &r->conf->origin[s->key];

	free(o->written);
	*o = (struct conf_origin){.source = r->yaml.source,
				  .line = place.line,
				  .column = place.column,
				  .written = written ? conf_strdup(written) : NULL};
}

/* The key has no valid value; the mistake is reported elsewhere. */
static void value_spoil(struct reader *r, const struct setting *s)
{
	r->conf->origin[s->key].bad = true;
}

static void scalar_read(struct reader *r, const struct setting *s)
{
	const yaml_event_t *e = &r->yaml.event;
	const char *text = (const char *)e->data.scalar.value;
	char why[WHY_MAX];
	bool written;
	int outcome;

	if (yaml_is_continued(&r->yaml)) { /* reported already */
		value_spoil(r, s);
		return;
	}
	outcome = value_parse(r->conf, s, text, e->data.scalar.length, &written, why);
	if (!outcome) {
		origin_set(r, s, yaml_place(&r->yaml), written ? text : NULL);
		return;
	}
	list_complain(&r->yaml, outcome, why);
	value_spoil(r, s);
}

static void list_read(struct reader *r, const struct setting *s, struct source_place place)
{
	struct list list = {.bad = false};
	struct source_place start = yaml_place(&r->yaml);

	list_items(&r->yaml, &list);
	if (!list.count && !list.bad && !r->yaml.over) {
		complain(r, start, "%s needs at least one address", s->path);
		list.bad = true;
	}
	if (list.bad || r->yaml.over) {
		for (size_t i = 0; i < list.count; i++)
			address_release(&list.node[i]);
		value_spoil(r, s);
		return;
	}
	value_set_nodes(r->conf, list.node, list.count);
	origin_set(r, s, place, NULL);
}

static void rules_take(struct reader *r, const struct setting *s, struct source_place place)
{
	struct conf_rules *rules = rules_read(&r->yaml);

	if (!rules) {
		value_spoil(r, s);
		return;
	}
	rules_free(r->conf->rules);
	r->conf->rules = rules;
	origin_set(r, s, place, NULL);
}

static void groups_take(struct reader *r, const struct setting *s, struct source_place place)
{
	char *text = groups_read(&r->yaml, s);

	if (!text) {
		value_spoil(r, s);
		return;
	}
	free(r->conf->metrics.groups);
	r->conf->metrics.groups = text;
	origin_set(r, s, place, NULL);
}

static void hosts_read(struct reader *r, const struct setting *s)
{
	struct source_place start = yaml_place(&r->yaml);
	char *text = list_words(&r->yaml, s->path, s->example), why[WHY_MAX];
	bool written;

	if (text && !value_parse(r->conf, s, text, strlen(text), &written, why)) {
		origin_set(r, s, start, NULL);
	} else {
		if (text)
			complain(r, start, "%s", why);
		value_spoil(r, s);
	}
	free(text);
}

/* NOLINTBEGIN(misc-no-recursion): no key of a branch is a branch. */
static void value_read(struct reader *r, const struct setting *s, struct source_place place);

/* Whether there are keys that begin with the path of s and a dot: s may hold them, as a mapping. */
static bool is_branch(const struct setting *s)
{
	return s->key == KEY_REDIS_TLS;
}

/* The key of a branch: "ca_file" in redis.tls is redis.tls.ca_file. NULL: there is none. */
static const struct setting *twig_find(const struct setting *s, const char *leaf)
{
	char path[128];

	snprintf(path, sizeof(path), "%s.%s", s->path, leaf);
	return setting_find_path(path);
}

static void twig_unknown(struct reader *r, const struct setting *s, const char *name)
{
	char path[128], hint[HINT_MAX] = "", show[SHOW_MAX];

	snprintf(path, sizeof(path), "%s.%s", s->path, name);
	setting_hint_path(path, hint);
	complain(r, yaml_place(&r->yaml), "%s has no key '%s'%s", s->path, text_show(name, show), hint);
	/* It may have been meant for any that is not met. */
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (!strncmp(setting_table[i].path, path, strlen(s->path) + 1) && !r->key_line[i])
			value_spoil(r, &setting_table[i]);
}

/* Reads one key of a branch, and its value. */
static void twig_read(struct reader *r, const struct setting *s)
{
	const yaml_event_t *e = &r->yaml.event;
	struct source_place place = yaml_place(&r->yaml);
	const char *name = e->type == YAML_SCALAR_EVENT ? (const char *)e->data.scalar.value : NULL;
	const struct setting *twig = name && strlen(name) == e->data.scalar.length ? twig_find(s, name) : NULL;

	if (twig && !r->key_line[twig->key]) {
		r->key_line[twig->key] = place.line;
		yaml_next(&r->yaml);
		value_read(r, twig, place);
		return;
	}
	if (twig)
		complain(r, place, "duplicate key '%s' (first in line %u)", name, r->key_line[twig->key]);
	else if (!name)
		complain(r, place, "a key is a plain word; this is %s", yaml_kind(&r->yaml));
	else
		twig_unknown(r, s, text_printable(name, e->data.scalar.length) ? name : "?");
	yaml_skip(&r->yaml);
	yaml_next(&r->yaml);
	yaml_skip(&r->yaml);
}

/* A mapping in place of the value of s, which is yes then. */
static void branch_read(struct reader *r, const struct setting *s, struct source_place place)
{
	char why[WHY_MAX];
	bool written;

	if (value_parse(r->conf, s, "yes", 3, &written, why))
		value_spoil(r, s);
	origin_set(r, s, place, NULL);
	while (yaml_next(&r->yaml) != YAML_MAPPING_END_EVENT && !r->yaml.over)
		twig_read(r, s);
}

/* Reads the value of a key, from its first event to its last. place: of the key. */
static void value_read(struct reader *r, const struct setting *s, struct source_place place)
{
	yaml_event_type_t type = r->yaml.event.type;

	if (type == YAML_SCALAR_EVENT && yaml_is_null(&r->yaml)) {
		complain(r, place, "%s has no value%s", s->path,
			 r->assignment ? "" : "; leave the line out, or make it a comment, to get the default");
	} else if (type == YAML_SEQUENCE_START_EVENT && s->type == TYPE_RULES) {
		rules_take(r, s, place);
		return;
	} else if (type == YAML_MAPPING_START_EVENT && s->type == TYPE_GROUPS) {
		groups_take(r, s, place);
		return;
	} else if (type == YAML_SEQUENCE_START_EVENT && setting_is_list(s)) {
		list_read(r, s, place);
		return;
	} else if (type == YAML_MAPPING_START_EVENT && is_branch(s)) {
		branch_read(r, s, place);
		return;
	} else if (type == YAML_SEQUENCE_START_EVENT && s->type == TYPE_HOSTS) {
		hosts_read(r, s);
		return;
	} else if (type == YAML_SCALAR_EVENT && !setting_is_list(s) && s->type != TYPE_GROUPS) {
		scalar_read(r, s);
		return;
	} else if (type != YAML_ALIAS_EVENT && type != YAML_NO_EVENT) {
		complain(r, yaml_place(&r->yaml), "%s is %s, as in %s; this is %s", s->path, setting_kind(s), s->given ? s->given : s->example,
			 yaml_kind(&r->yaml));
	}
	value_spoil(r, s);
	yaml_skip(&r->yaml);
}
/* NOLINTEND(misc-no-recursion) */

/* NOLINTBEGIN(misc-no-recursion): sections exist at the top only, so there are at most two levels. */
static void section_read(struct reader *r, const struct section *section);

static void section_enter(struct reader *r, const struct section *section)
{
	yaml_event_type_t type = yaml_next(&r->yaml);

	if (type == YAML_MAPPING_START_EVENT) {
		section_read(r, section);
		return;
	}
	/* A section without a value is empty: all its keys may be comments. */
	if (type != YAML_ALIAS_EVENT && type != YAML_NO_EVENT && !(type == YAML_SCALAR_EVENT && yaml_is_null(&r->yaml)))
		complain(r, yaml_place(&r->yaml), "'%s' is a section; its keys follow in lines of their own, indented",
			 section->name);
	yaml_skip(&r->yaml);
}

/* A key may occur only once in a text: YAML does not define which of two counts. */
static bool first_time(struct reader *r, unsigned *line, const char *name)
{
	struct source_place place = yaml_place(&r->yaml);

	if (*line) {
		complain(r, place, "duplicate key '%s' (first in line %u)", name, *line);
		return false;
	}
	*line = place.line;
	return true;
}

static void key_unknown(struct reader *r, const struct section *section, const char *name)
{
	char hint[HINT_MAX], show[SHOW_MAX];

	if (!text_printable(name, r->yaml.event.data.scalar.length)) {
		complain(r, yaml_place(&r->yaml), "a key is a plain word; this one holds a control character");
		return;
	}
	if (!strcmp(name, "<<")) {
		complain(r, yaml_place(&r->yaml), "merge keys have no use here: write the keys themselves");
		return;
	}
	setting_hint(section, name, hint);
	if (!strncmp(name, "pass", 4))
		report_secret(r->yaml.report, r->yaml.source, yaml_place(&r->yaml), "unknown key '%s'%s", text_show(name, show),
			      hint);
	else
		complain(r, yaml_place(&r->yaml), "unknown key '%s'%s", text_show(name, show), hint);
}

/* Reads one key of a mapping, and its value or section. */
static void pair_read(struct reader *r, const struct section *section)
{
	const char *name = (const char *)r->yaml.event.data.scalar.value;
	struct source_place place = yaml_place(&r->yaml);
	bool whole = strlen(name) == r->yaml.event.data.scalar.length; /* "lease\0" is not lease */
	const struct setting *s = whole ? setting_find(section, name) : NULL;
	const struct section *deeper = section || !whole ? NULL : section_find(name);

	if (s && first_time(r, &r->key_line[s->key], name)) {
		yaml_next(&r->yaml);
		value_read(r, s, place);
	} else if (deeper && first_time(r, &r->section_line[deeper - section_table], name)) {
		section_enter(r, deeper);
	} else {
		if (!s && !deeper)
			key_unknown(r, section, name);
		yaml_next(&r->yaml);
		yaml_skip(&r->yaml);
	}
}

static void section_read(struct reader *r, const struct section *section)
{
	while (yaml_next(&r->yaml) != YAML_MAPPING_END_EVENT && !r->yaml.over) {
		if (r->yaml.event.type == YAML_SCALAR_EVENT) {
			pair_read(r, section);
			continue;
		}
		if (r->yaml.event.type != YAML_ALIAS_EVENT)
			complain(r, yaml_place(&r->yaml), "a key is a plain word; this is %s", yaml_kind(&r->yaml));
		yaml_skip(&r->yaml);
		yaml_next(&r->yaml);
		yaml_skip(&r->yaml);
	}
}
/* NOLINTEND(misc-no-recursion) */

/* Reads the whole text: one mapping, or only comments. */
static void root_read(struct reader *r, const struct setting *s)
{
	yaml_event_type_t type = yaml_next(&r->yaml);

	if (s) {
		value_read(r, s, (struct source_place){1, 1});
	} else if (type == YAML_MAPPING_START_EVENT) {
		section_read(r, NULL);
	} else {
		if (type != YAML_NO_EVENT && type != YAML_ALIAS_EVENT && !(type == YAML_SCALAR_EVENT && yaml_is_null(&r->yaml)))
			complain(r, yaml_place(&r->yaml), "a configuration is keys and values, as in 'lease: 10s'; this is %s",
				 yaml_kind(&r->yaml));
		yaml_skip(&r->yaml);
	}
}

static int bare_read(struct conf *c, const struct conf_source *source, size_t from, const struct setting *s, struct conf_report *report)
{
	struct reader r = {.conf = c, .yaml = {.source = source, .report = report}};
	struct source_place place = {1, 1};
	char why[WHY_MAX];
	bool written;
	uint32_t rune;
	size_t n = source->n - from, at = lookalike_find(source->text + from, n, false, &rune);
	int outcome = at < n ? VALUE_BAD : value_parse(c, s, source->text + from, n, &written, why);

	if (at < n)
		snprintf(why, WHY_MAX, LOOKALIKE_FLAW, (unsigned)rune, lookalike_name(lookalike_of(rune)));
	if (!outcome) {
		origin_set(&r, s, place, written ? source->text + from : NULL);
		return 0;
	}
	place.column += (unsigned)from;
	report_error(report, source, place, "%s", why);
	value_spoil(&r, s);
	return -1;
}

static void stream_read(struct reader *r, const struct setting *s)
{
	unsigned documents = 0;

	while (yaml_next(&r->yaml) != YAML_STREAM_END_EVENT && !r->yaml.over) {
		if (r->yaml.event.type != YAML_DOCUMENT_START_EVENT)
			continue;
		if (documents++) {
			complain(r, yaml_place(&r->yaml), "a second document begins here; a configuration is one");
			r->yaml.over = true;
			return;
		}
		root_read(r, s);
	}
	/* An empty assignment is an empty stream. */
	if (s && !documents && !r->yaml.over)
		complain(r, ((struct source_place){1, 1}), "%s has no value", s->path);
}

/* Reading ended early: the keys that were not met may be in the rest, so they are marked bad. */
static void unread_spoil(struct reader *r)
{
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (!r->key_line[i])
			value_spoil(r, &setting_table[i]);
}

int reader_run(struct conf *c, const struct conf_source *source, size_t from, const struct setting *s, struct conf_report *report)
{
	struct reader r = {.conf = c, .assignment = s != NULL};
	unsigned before = report->errors;
	struct source_place place;
	size_t usable = source->n;
	const char *flaw = source_flaw(source, &place, &usable);

	if (flaw)
		report_error(report, source, place, "%s", flaw);
	if (flaw && s)
		return -1;
	if (s && value_is_bare(s, source->text + from, source->n - from))
		return bare_read(c, source, from, s, report);
	r.section_line = conf_alloc(section_count * sizeof(*r.section_line));
	yaml_open(&r.yaml, report, source, from, usable);
	r.yaml.flawed = flaw != NULL;
	stream_read(&r, s);
	if (!s && (flaw || r.yaml.over))
		unread_spoil(&r);
	yaml_close(&r.yaml);
	free(r.section_line);
	return report->errors == before ? 0 : -1;
}
