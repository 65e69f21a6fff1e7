/* SPDX-License-Identifier: BSD-2-Clause */
/* See groups.h. After a mistake reading goes on, so one run reports all of them. */
#include "conf/groups.h"

#include "conf/source.h"
#include "conf/words.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS_MOST  64
#define LABEL_MOST   64  /* bytes */
#define PATTERN_MOST 512 /* bytes */

/* The groups read so far. */
struct groups {
	struct yaml *yaml;
	char *text;
	unsigned count;
	bool bad;
};

#define complain(g, place, ...) ((g)->bad = true, report_error((g)->yaml->report, (g)->yaml->source, (place), __VA_ARGS__))

static bool is_label(const char *text, size_t n)
{
	return n > 0 && n <= LABEL_MOST && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == n;
}

static bool has_label(const char *groups, const char *label)
{
	size_t n = strlen(label);

	for (const char *at = groups; *at; at += strcspn(at, "\n"), at += *at == '\n')
		if (!strncmp(at, label, n) && at[n] == '\t')
			return true;
	return false;
}

static void group_add(struct groups *g, const char *label, const char *pattern)
{
	char *more = conf_alloc(strlen(g->text) + strlen(label) + strlen(pattern) + 3);

	sprintf(more, "%s%s%s\t%s", g->text, *g->text ? "\n" : "", label, pattern);
	free(g->text);
	g->text = more;
	g->count++;
}

/* The present event is the pattern of this label. */
static void pattern_take(struct groups *g, const char *label)
{
	const yaml_event_t *e = &g->yaml->event;
	const char *text = e->type == YAML_SCALAR_EVENT ? (const char *)e->data.scalar.value : "";
	char show[SHOW_MAX];

	if (yaml_is_continued(g->yaml)) /* reported already */
		g->bad = true;
	else if (!*text || strlen(text) > PATTERN_MOST || !text_printable(text, e->data.scalar.length))
		complain(g, yaml_place(g->yaml), "metrics.groups: the pattern of '%s' is a text of 1 to %d bytes, as in \"orders/*\"", label, PATTERN_MOST);
	else if (text[strcspn(text, "*")] && text[strcspn(text, "*") + 1])
		complain(g, yaml_place(g->yaml),
		         "metrics.groups: the pattern of '%s' is a name, or a beginning of names and one * at its end, as in \"orders/*\", not '%s'", label,
		         text_show(text, show));
	else
		group_add(g, label, text);
}

/* The present event is a label, or stands for one. False: complained. */
static bool label_fits(struct groups *g, const char *label)
{
	const yaml_event_t *e = &g->yaml->event;
	char show[SHOW_MAX];

	if (e->type != YAML_SCALAR_EVENT || !is_label(label, e->data.scalar.length))
		complain(g, yaml_place(g->yaml), "a label has 1 to %d letters, digits, _, - and ., not '%s'", LABEL_MOST, text_show(label, show));
	else if (has_label(g->text, label))
		complain(g, yaml_place(g->yaml), "two groups are called '%s'", label);
	else if (g->count == GROUPS_MOST)
		complain(g, yaml_place(g->yaml), "at most %d groups", GROUPS_MOST);
	else
		return true;
	return false;
}

static void pair_take(struct groups *g)
{
	const yaml_event_t *e = &g->yaml->event;
	char *label = conf_strdup(e->type == YAML_SCALAR_EVENT ? (const char *)e->data.scalar.value : yaml_kind(g->yaml));
	bool fits = label_fits(g, label);

	yaml_skip(g->yaml);
	yaml_next(g->yaml);
	if (fits)
		pattern_take(g, label);
	yaml_skip(g->yaml);
	free(label);
}

char *groups_read(struct yaml *y, const struct setting *s)
{
	struct groups g = {.yaml = y, .text = conf_strdup("")};
	struct source_place start = yaml_place(y);

	while (yaml_next(y) != YAML_MAPPING_END_EVENT && !y->over)
		pair_take(&g);
	if (!*g.text && !g.bad && !y->over)
		complain(&g, start, "%s has no group; leave the key out if there is none", s->path);
	if (!g.bad && !y->over)
		return g.text;
	free(g.text);
	return NULL;
}

void groups_print(const char *groups, FILE *out)
{
	char *copy = conf_strdup(groups), *rest, *pattern;

	fputc('{', out);
	for (char *label = strtok_r(copy, "\n", &rest); label; label = strtok_r(NULL, "\n", &rest)) {
		pattern = strchr(label, '\t');
		*pattern++ = '\0';
		fputs(label == copy ? "" : ", ", out);
		value_print_text(label, out);
		fputs(": ", out);
		value_print_text(pattern, out);
	}
	fputc('}', out);
	free(copy);
}
