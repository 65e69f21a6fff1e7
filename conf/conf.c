/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration as a whole: creates, frees, reads, prints, compares and reloads it. The same reader parses each default and the values of a file,
 * so every default of the table is a value that a file could contain. Reading the dump gives the same values.
 */
#include "conf/internal.h"

#include <stdlib.h>
#include <string.h>

#define COMMENT_COLUMN 40
#define TEXT_MAX       256 /* bytes of the text for a key without a value */

static void default_set(struct conf *c, const struct setting *s)
{
	char why[WHY_MAX];

	if (!s->given)
		return;
	if (conf_value_parse(c, s, s->given, why))
		abort(); /* a mistake in schema.def */
	c->origin[s->key].written = text_line(s->given);
}

void conf_init(struct conf *ret_conf)
{
	*ret_conf = (struct conf){0};
	for (size_t i = 0; i < CONF_KEYS; i++)
		default_set(ret_conf, &setting_table[i]);
}

void conf_release(struct conf *c)
{
	for (size_t i = 0; i < CONF_KEYS; i++) {
		conf_value_release(c, &setting_table[i]);
		free(c->origin[i].written);
	}
	source_free(c->sources);
	*c = (struct conf){0};
}

static void files_check(struct conf *c, const char *path, struct conf_report *report)
{
	modes_check(c, path, report);
	secrets_check(c, report);
	if (c->auth.users_file && !c->origin[KEY_AUTH_USERS_FILE].bad)
		conf_users_free(conf_users(c, report));
}

int conf_read(struct conf *ret_conf, const char *path, const char *const *sets, size_t count, struct conf_report *report)
{
	conf_init(ret_conf);
	if (path)
		(void)conf_load(ret_conf, path, report);
	for (size_t i = 0; i < count; i++)
		(void)conf_set(ret_conf, sets[i], report);
	(void)conf_check(ret_conf, report);
	if (report->files)
		files_check(ret_conf, path, report);
	if (report->more)
		(void)report->more(ret_conf, report);
	conf_report_print(report);
	return report->errors ? -1 : 0;
}

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

static void setting_dump(const struct conf *c, const struct setting *s, FILE *out)
{
	const char *indent = setting_section(s) ? "  " : "", *leaf = setting_leaf(s), *written = c->origin[s->key].written;
	int width;

	if (!written) {
		fprintf(out, "%s# %s: (%s)\n", indent, leaf, s->unset);
		return;
	}
	width = (int)(strlen(indent) + strlen(leaf) + 2 + utf8_count(written, strlen(written)));
	fprintf(out, "%s%s: %s%*s  # ", indent, leaf, written, width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 0, "");
	origin_print(&c->origin[s->key], out);
	fputc('\n', out);
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

bool conf_password_is_live(const struct conf *now, const struct conf *fresh)
{
	const char *a = now->redis.user, *b = fresh->redis.user;

	return a && b ? !strcmp(a, b) : a == b;
}

/* Protection of an address must not vanish. What replaces it in the file, like rules or a loopback address, may itself need a restart. */
static bool protection_vanishes(const struct conf *now, const struct conf *fresh, const struct setting *s)
{
	return (s->key == KEY_AUTH_USERS_FILE && now->auth.users_file && !fresh->auth.users_file) ||
	       (s->key == KEY_TLS_CLIENT_CA_FILE && now->tls.client_ca_file && !fresh->tls.client_ca_file) ||
	       (s->key == KEY_HTTP_TOKEN_FILE && now->http.token_file && !fresh->http.token_file) ||
	       (s->key == KEY_API_TOKEN_FILE && now->api.token_file && !fresh->api.token_file);
}

/*
 * Whether a reload puts the key into effect. The max_lease of the start decides how long a store that may have forgotten locks is in quarantine. So
 * no lease may be longer than that max_lease, even if the file now has a larger one. min_lease may not exceed the lease. A password needs its user. A
 * daemon without rules does not record the groups of its peers.
 */
static bool value_is_live(const struct conf *now, const struct conf *fresh, const struct setting *s)
{
	bool bound = s->key == KEY_LEASE || s->key == KEY_MIN_LEASE;

	if (s->key == KEY_REDIS_PASSWORD_FILE && !conf_password_is_live(now, fresh))
		return false;
	if (s->key == KEY_RULES && !now->rules != !fresh->rules)
		return false;
	if (protection_vanishes(now, fresh, s))
		return false;
	return s->live && !(bound && fresh->lease > now->max_lease);
}

/* Returns the value as a file would contain it. For a key without a value: what happens then, in parentheses. */
static const char *value_text(const struct conf *c, const struct setting *s, char out[TEXT_MAX])
{
	if (c->origin[s->key].written)
		return c->origin[s->key].written;
	snprintf(out, TEXT_MAX, "(%s)", s->unset);
	return out;
}

unsigned conf_diff(const struct conf *from, const struct conf *to, conf_diff_fn *differs, void *context)
{
	char before[TEXT_MAX], after[TEXT_MAX];
	unsigned restarts = 0;

	for (size_t i = 0; i < CONF_KEYS; i++) {
		const struct setting *s = &setting_table[i];
		bool live = value_is_live(from, to, s);

		if (conf_value_equal(from, to, s))
			continue;
		restarts += !live;
		if (differs)
			differs(context, s->path, value_text(from, s, before), value_text(to, s, after), live);
	}
	return restarts;
}

static bool source_is_used(const struct conf *c, const struct conf_source *source)
{
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (c->origin[i].source == source)
			return true;
	return false;
}

/* Frees the sources from which no value comes any more, so that reloads do not use more and more memory. */
static void sources_prune(struct conf *c)
{
	for (struct conf_source **at = &c->sources; *at;) {
		struct conf_source *source = *at;

		if (source_is_used(c, source)) {
			at = &source->next;
			continue;
		}
		*at = source->next;
		source->next = NULL;
		source_free(source);
	}
}

/* From now on, origins in c refer to sources of both configurations. So c takes ownership of all sources. */
static void sources_take(struct conf *c, struct conf *fresh)
{
	struct conf_source **end = &c->sources;

	while (*end)
		end = &(*end)->next;
	*end = fresh->sources;
	fresh->sources = NULL;
	for (size_t i = 0; i < CONF_KEYS; i++)
		fresh->origin[i].source = NULL;
}

void conf_take_live(struct conf *c, struct conf *fresh)
{
	bool live[CONF_KEYS];

	for (size_t i = 0; i < CONF_KEYS; i++)
		live[i] = value_is_live(c, fresh, &setting_table[i]);
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (live[i])
			conf_value_swap(c, fresh, &setting_table[i]);
	sources_take(c, fresh);
	sources_prune(c);
}
