/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effective configuration for people: the dump, the summary, the difference. Reading the dump gives the same values.
 */
#include "conf/conf.h"

#include "conf/schema.h"
#include "conf/source.h"
#include "conf/value.h"
#include "conf/words.h"

#include <stdlib.h>
#include <string.h>

#define COMMENT_COLUMN 40

static void origin_print(const struct conf_origin *o, FILE *out)
{
	char show[SHOW_MAX];

	if (!o->source)
		fputs("default", out);
	else if (!strcmp(o->source->label, "--set"))
		fputs("--set", out);
	else
		fprintf(out, "%s:%u", text_show(o->source->label, show), o->line);
}

/* The value as text, which the caller frees. */
static char *value_text(const struct conf *c, const struct setting *s)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		abort();
	value_print(c, s, out);
	if (fclose(out))
		abort();
	return text;
}

static void setting_dump(const struct conf *c, const struct setting *s, FILE *out)
{
	const char *indent = setting_section(s) ? "  " : "", *leaf = setting_leaf(s);
	char *text = value_text(c, s);
	int width = (int)(strlen(indent) + strlen(leaf) + 2 + utf8_count(text, strlen(text)));

	if (value_is_set(c, s)) {
		fprintf(out, "%s%s: %s%*s  # ", indent, leaf, text, width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 0, "");
		origin_print(&c->origin[s->key], out);
		fputc('\n', out);
	} else {
		fprintf(out, "%s# %s: %s\n", indent, leaf, text);
	}
	free(text);
}

void conf_dump(const struct conf *c, FILE *out)
{
	const struct section *now = NULL;

	for (size_t i = 0; i < CONF_KEYS; i++) {
		const struct section *section = setting_section(&setting_table[i]);

		if (section && section != now)
			fprintf(out, "%s:\n", section->name);
		now = section;
		setting_dump(c, &setting_table[i], out);
	}
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

void conf_summary(const struct conf *c, FILE *out)
{
	size_t n = c->redis.nodes, listeners = !(c->listen.unix_path && !*c->listen.unix_path);

	listeners += (c->listen.tcp_host != NULL) + (c->listen.tls_host != NULL) + (c->listen.http.label != NULL) +
	             (c->listen.api.label != NULL);

	if (c->store == STORE_REDIS)
		fprintf(out, "ok: store redis, %zu node%s, quorum %zu, %zu listener%s\n", n, plural(n), n / 2 + 1, listeners,
			plural(listeners));
	else
		fprintf(out, "ok: store memory, %zu listener%s\n", listeners, plural(listeners));
}

void conf_keys(FILE *out)
{
	for (size_t i = 0; i < CONF_KEYS; i++) {
		const struct setting *s = &setting_table[i];
		const char *end = strstr(s->help, ". ");
		int n = end ? (int)(end - s->help) + 1 : (int)strlen(s->help);

		fprintf(out, "  %-20s %-15s %.*s\n", s->path, s->given ? s->given : "-", n, s->help);
	}
}

static void difference_say(const struct conf *from, const struct conf *to, const struct setting *s, conf_diff_fn *say,
			   void *context)
{
	char *before = value_text(from, s), *after = value_text(to, s);

	say(context, s->path, before, after, value_is_live(from, to, s));
	free(before);
	free(after);
}

unsigned conf_diff(const struct conf *from, const struct conf *to, conf_diff_fn *say, void *context)
{
	unsigned restarts = 0;

	for (size_t i = 0; i < CONF_KEYS; i++) {
		const struct setting *s = &setting_table[i];

		if (value_equal(from, to, s))
			continue;
		restarts += !value_is_live(from, to, s);
		if (say)
			difference_say(from, to, s, say, context);
	}
	return restarts;
}
