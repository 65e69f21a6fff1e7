/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table as data; finds a row, or the row that was probably meant.
 */
#include "conf/schema.h"

#include "conf/words.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define GIVEN(text)            .given = (text)
#define UNSET(meaning, sample) .unset = (meaning), .example = (sample)
#define RANGE(least, most)     .low = (least), .high = (most)
#define WORDS(list)            .words = (list)
#define ANY                    .low = NULL
#define LIVE                   true
#define RESTART                false

#define SECTION(...)
#define KEY(id, name, kind, field, otherwise, range, effect, text)                                                               \
	[KEY_##id] = {.key = KEY_##id,                                                                                           \
		      .path = (name),                                                                                            \
		      .type = TYPE_##kind,                                                                                       \
		      .offset = offsetof(struct conf, field),                                                                    \
		      otherwise,                                                                                                 \
		      range,                                                                                                     \
		      .live = (effect),                                                                                          \
		      .help = (text)},
const struct setting setting_table[CONF_KEYS] = {
#include "conf/schema.def"
};
#undef KEY
#undef SECTION

#define SECTION(word, text) {.name = (word), .help = (text)},
#define KEY(...)
const struct section section_table[] = {
#include "conf/schema.def"
};
#undef KEY
#undef SECTION

const size_t section_count = sizeof(section_table) / sizeof(section_table[0]);

/* Names that other programs use, for which a spelling distance finds no key. */
static const char *const other_name[][2] = {
	{"password", "redis.password_file"},
	{"username", "redis.user"},
	{"db", "redis.database"},
	{"prefix", "redis.key_prefix"},
	{"servers", "redis.nodes"},
	{"addresses", "redis.nodes"},
	{"ttl", "lease"},
	{"max_ttl", "max_lease"},
	{"socket", "listen.unix"},
	{"loglevel", "log.level"},
	{"max_clients", "limits.clients"},
	{"pool", "redis.links"},
};

const struct section *section_find(const char *name)
{
	for (size_t i = 0; i < section_count; i++)
		if (!strcmp(section_table[i].name, name))
			return &section_table[i];
	return NULL;
}

const char *setting_leaf(const struct setting *s)
{
	const char *dot = strchr(s->path, '.');

	return dot ? dot + 1 : s->path;
}

const struct section *setting_section(const struct setting *s)
{
	const char *dot = strchr(s->path, '.');

	for (size_t i = 0; dot && i < section_count; i++)
		if (!strncmp(section_table[i].name, s->path, (size_t)(dot - s->path)) && !section_table[i].name[dot - s->path])
			return &section_table[i];
	return NULL;
}

bool setting_is_list(const struct setting *s)
{
	return s->type == TYPE_NODES || s->type == TYPE_RULES;
}

const char *setting_kind(const struct setting *s)
{
	return setting_is_list(s) ? "a list" : s->type == TYPE_GROUPS ? "a mapping" : "a single value";
}

bool setting_is_text(const struct setting *s)
{
	return s->type == TYPE_TEXT || s->type == TYPE_FILENAME || s->type == TYPE_FOLDER || s->type == TYPE_SOCKET;
}

const struct setting *setting_find_path(const char *path)
{
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (!strcmp(setting_table[i].path, path))
			return &setting_table[i];
	return NULL;
}

const struct setting *setting_find(const struct section *section, const char *leaf)
{
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (setting_section(&setting_table[i]) == section && !strcmp(setting_leaf(&setting_table[i]), leaf))
			return &setting_table[i];
	return NULL;
}

/* The nearest name so far, and its distance. */
struct nearest {
	const char *typed, *name;
	unsigned distance;
};

static void nearest_try(struct nearest *n, const char *candidate)
{
	unsigned d;

	if (word_near(n->typed, candidate, &d) && d < n->distance) {
		n->name = candidate;
		n->distance = d;
	}
}

static const struct setting *other_name_find(const char *typed)
{
	for (size_t i = 0; i < sizeof(other_name) / sizeof(other_name[0]); i++)
		if (!strcasecmp(other_name[i][0], typed))
			return setting_find_path(other_name[i][1]);
	return NULL;
}

/* The key of exactly that name in another section. */
static const struct setting *elsewhere_find(const char *typed)
{
	const struct setting *path = setting_find_path(typed);

	for (size_t i = 0; !path && i < CONF_KEYS; i++)
		if (!strcmp(setting_leaf(&setting_table[i]), typed))
			path = &setting_table[i];
	return path ? path : other_name_find(typed);
}

static void hint_write(const struct setting *s, const struct section *here, char ret_hint[HINT_MAX])
{
	const struct section *there = setting_section(s);

	if (there == here)
		snprintf(ret_hint, HINT_MAX, " (did you mean '%s'?)", setting_leaf(s));
	else if (there)
		snprintf(ret_hint, HINT_MAX, " (did you mean '%s' under '%s'?)", setting_leaf(s), there->name);
	else
		snprintf(ret_hint, HINT_MAX, " (did you mean '%s' at the top level?)", s->path);
}

void setting_hint(const struct section *section, const char *typed, char ret_hint[HINT_MAX])
{
	struct nearest n = {.typed = typed, .distance = 3};
	const struct setting *s = elsewhere_find(typed);

	*ret_hint = '\0';
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (setting_section(&setting_table[i]) == section)
			nearest_try(&n, setting_leaf(&setting_table[i]));
	for (size_t i = 0; !section && i < section_count; i++)
		nearest_try(&n, section_table[i].name);
	if (n.name)
		snprintf(ret_hint, HINT_MAX, " (did you mean '%s'?)", n.name);
	else if (s)
		hint_write(s, section, ret_hint);
	else if (section && section_find(typed))
		snprintf(ret_hint, HINT_MAX, " (did you mean '%s' at the top level?)", typed);
}

void setting_hint_path(const char *typed, char ret_hint[HINT_MAX])
{
	struct nearest n = {.typed = typed, .distance = 3};
	const struct setting *s = elsewhere_find(typed);

	*ret_hint = '\0';
	for (size_t i = 0; i < CONF_KEYS; i++)
		nearest_try(&n, setting_table[i].path);
	if (n.name || s)
		snprintf(ret_hint, HINT_MAX, " (did you mean '%s'?)", n.name ? n.name : s->path);
}

static void words_range(const char *words, char *out, size_t size)
{
	char word[64];
	size_t n = 0;

	for (unsigned i = 0; n < size && alternative_get(words, i, word, sizeof(word)); i++) {
		bool last = !alternative_get(words, i + 1, (char[64]){0}, 64);

		n += (size_t)snprintf(out + n, size - n, "%s%s", !i ? "" : last ? " or " : ", ", word);
	}
}

void setting_range(const struct setting *s, char *out, size_t size)
{
	switch (s->type) {
	case TYPE_BOOL:
		snprintf(out, size, "yes or no");
		break;
	case TYPE_CHOICE:
		words_range(s->words, out, size);
		break;
	case TYPE_COUNT:
		snprintf(out, size, "a whole number from %s to %s", s->low, s->high);
		break;
	case TYPE_SIZE:
		snprintf(out, size, "a size from %s to %s", s->low, s->high);
		break;
	case TYPE_DURATION:
		snprintf(out, size, "a duration from %s to %s", s->low, s->high);
		break;
	case TYPE_TEXT:
		snprintf(out, size, "a text of %s to %s bytes", s->low, s->high);
		break;
	case TYPE_FILENAME:
		snprintf(out, size, "the name of a file");
		break;
	case TYPE_FOLDER:
		snprintf(out, size, "an absolute path");
		break;
	case TYPE_SOCKET:
		snprintf(out, size, "a path of at most %s bytes, or no", s->high);
		break;
	case TYPE_LISTENER:
		snprintf(out, size, "an address with a port, or no");
		break;
	case TYPE_WEB:
		snprintf(out, size, "an address with a port, unix:/path, or no");
		break;
	case TYPE_HOSTS:
		snprintf(out, size, "a list of %s to %s host names", s->low, s->high);
		break;
	case TYPE_NODES:
		snprintf(out, size, "a list of %s to %s addresses", s->low, s->high);
		break;
	case TYPE_RULES:
		snprintf(out, size, "a list of rules");
		break;
	case TYPE_GROUPS:
		snprintf(out, size, "a mapping of %s to %s labels to patterns", s->low, s->high);
		break;
	}
}
