/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads text from a file, the command line or a caller into the fields of the table. It continues after a mistake, so that one run reports all
 * mistakes. A refused value marks its key bad, and later checks skip that key. Text that is not YAML gets one message, and all keys are bad.
 */
#include "conf/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MOST 128 /* bytes of the path of a key */

struct reader {
	struct yaml yaml;
	struct conf *conf;
	unsigned key_line[CONF_KEYS];     /* line of the key in this text; 0: not seen yet */
	unsigned section_line[CONF_KEYS]; /* the same for sections, of which there are fewer */
};

/* NOLINTBEGIN(misc-no-recursion): no key of a section is a section, and no key of redis.tls has keys. */
static void keys_read(struct reader *r, const char *above, const yaml_node_t *mapping);

static void section_read(struct reader *r, const char *name, const yaml_node_t *value)
{
	char rule[PATH_MOST + 80];

	snprintf(rule, sizeof(rule), "'%s' is a section; its keys follow in lines of their own, indented", name);
	/* A section without a value is empty: all its keys may be comments. */
	if (!yaml_is_null(value) && yaml_is(&r->yaml, value, YAML_MAPPING_NODE, rule))
		keys_read(r, name, value);
}

/* The value of redis.tls may be a mapping with its keys, and then means yes. */
static void branch_read(struct reader *r, const struct setting *s, const yaml_node_t *value)
{
	char why[WHY_MAX];

	if (conf_value_parse(r->conf, s, "yes", why) == 0)
		origin_set(r->conf, s->key, r->yaml.source, yaml_place(&r->yaml, value), conf_strdup("yes"));
	keys_read(r, s->path, value);
}

/* A key may occur only once in a text: YAML does not define which of two counts. */
static bool first_time(struct reader *r, unsigned *line, const yaml_node_t *key, const char *name)
{
	unsigned first = *line;

	*line = first ? first : yaml_place(&r->yaml, key).line;
	if (first)
		complain(&r->yaml, key, "duplicate key '%s' (first in line %u)", name, first);
	return !first;
}

static void key_unknown(struct reader *r, const yaml_node_t *key, const char *path, const char *name)
{
	char hint[HINT_MAX], show[SHOW_MAX];

	report_add(r->yaml.report, strncmp(name, "pass", 4) ? GRADE_ERROR : GRADE_SECRET, r->yaml.source, yaml_place(&r->yaml, key), "unknown key '%s'%s",
	           text_show(path, show), setting_hint(path, hint));
}

static void pair_read(struct reader *r, const char *path, const yaml_node_t *key, const char *name, const yaml_node_t *value)
{
	const struct setting *s = setting_find(path);
	const struct section *section = section_find(path);

	if (!s && !section)
		key_unknown(r, key, path, name);
	else if (!first_time(r, s ? &r->key_line[s->key] : &r->section_line[section - section_table], key, name))
		return;
	else if (section)
		section_read(r, name, value);
	else if (s->key == KEY_REDIS_TLS && value->type == YAML_MAPPING_NODE)
		branch_read(r, s, value);
	else
		conf_value_read(r->conf, s, &r->yaml, value);
}

/* Reads the keys of a mapping. above: the path of its section or key; "" for the whole configuration. */
static void keys_read(struct reader *r, const char *above, const yaml_node_t *mapping)
{
	for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_node(&r->yaml, pair->key);
		const char *name = yaml_text(&r->yaml, key, "a key is a plain word");
		char path[PATH_MOST];

		if (!name)
			continue;
		snprintf(path, sizeof(path), "%s%s%s", above, *above ? "." : "", name);
		pair_read(r, path, key, name, yaml_node(&r->yaml, pair->value));
	}
}
/* NOLINTEND(misc-no-recursion) */

/* Reads the whole text: one mapping, or only comments. */
static void root_read(struct reader *r)
{
	yaml_node_t *root = yaml_root(&r->yaml);

	if (root && !yaml_is_null(root) && yaml_is(&r->yaml, root, YAML_MAPPING_NODE, "a configuration is keys and values, as in 'lease: 10s'"))
		keys_read(r, "", root);
}

int conf_load_text(struct conf *c, const char *label, const char *text, size_t n, struct conf_report *report)
{
	const struct conf_source *source = source_add(&c->sources, label, text, n);
	struct reader r = {.conf = c};
	struct source_place place;
	unsigned before = report->errors;
	const char *flaw = source_flaw(source, &place);
	bool sound = !flaw && yaml_open(&r.yaml, report, source, 0);

	if (flaw)
		report_error(report, source, place, "%s", flaw);
	if (sound)
		root_read(&r);
	for (size_t i = 0; i < CONF_KEYS && !sound; i++)
		c->origin[i].bad = true;
	yaml_close(&r.yaml);
	return report->errors == before ? 0 : -1;
}

/* Reads up to one byte more than a configuration may have, to detect a longer file. */
static ssize_t file_read(const char *path, char *text, size_t size)
{
	size_t n = 0;
	ssize_t r = 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (n < size && r) {
		r = read(fd, text + n, size - n);
		if (r < 0 && errno != EINTR)
			break;
		n += r > 0 ? (size_t)r : 0;
	}
	r = r < 0 ? -errno : (ssize_t)n;
	close(fd);
	return r;
}

bool conf_may_be_read_again(const char *path)
{
	struct stat st;

	return !path || stat(path, &st) || S_ISREG(st.st_mode);
}

int conf_load(struct conf *c, const char *path, struct conf_report *report)
{
	char *text = conf_alloc(SOURCE_MAX + 1);
	ssize_t n = file_read(path, text, SOURCE_MAX + 1);
	int r = -1;

	if (n < 0)
		report_error(report, source_add(&c->sources, path, "", 0), (struct source_place){0}, "cannot be read: %s", strerror((int)-n));
	else
		r = conf_load_text(c, path, text, (size_t)n, report);
	free(text);
	return r;
}

/* A value that begins with a quote, or with a bracket that no address has, is YAML. Any other value is taken literally. */
static void assignment_read(struct conf *c, const struct setting *s, const struct conf_source *source, size_t from, struct conf_report *report)
{
	struct reader r = {.conf = c};
	struct source_place place = {1, (unsigned)from + 1};
	const char *text = source->text + from;
	char why[WHY_MAX];

	if (*text && strchr(s->type == TYPE_LISTENER || s->type == TYPE_WEB ? "\"'" : "\"'[{", *text)) {
		if (yaml_open(&r.yaml, report, source, from))
			pair_read(&r, s->path, yaml_root(&r.yaml), s->path, yaml_root(&r.yaml));
		yaml_close(&r.yaml);
	} else if (conf_value_parse(c, s, text, why)) {
		report_error(report, source, place, "%s", why);
	} else {
		origin_set(c, s->key, source, place, text_line(text));
	}
}

int conf_set(struct conf *c, const char *assignment, struct conf_report *report)
{
	struct conf_source *source = source_add(&c->sources, "--set", assignment, strlen(assignment));
	const char *equals = strchr(assignment, '=');
	char *path = conf_strndup(assignment, equals ? (size_t)(equals - assignment) : 0), hint[HINT_MAX], show[SHOW_MAX];
	const struct setting *s = setting_find(path);
	struct source_place start = {1, 1};
	unsigned before = report->errors;

	if (!equals)
		report_error(report, source, start, "an assignment is path=value, as in lease=30s");
	else if (!text_printable(assignment, strlen(assignment)))
		report_error(report, source, start, "an assignment is one line, without control characters");
	else if (section_find(path))
		report_error(report, source, start, "'%s' is a section; name one of its keys, as in redis.timeout=80ms", path);
	else if (!s)
		report_error(report, source, start, "unknown key '%s'%s", text_show(path, show), setting_hint(path, hint));
	else
		assignment_read(c, s, source, (size_t)(equals + 1 - assignment), report);
	if (s && report->errors != before)
		c->origin[s->key].bad = true;
	free(path);
	return report->errors == before ? 0 : -1;
}
