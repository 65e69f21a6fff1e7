/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table as data. Finds a row, or suggests one for a misspelt key.
 */
#include "conf/schema.h"

#include "proto/proto.h"

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

#define SECTIONS (sizeof(section_table) / sizeof(section_table[0]))
const size_t section_count = SECTIONS;

/* Names from other programs that are too different from our keys for a spelling distance. */
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

const struct setting *setting_find(const char *path)
{
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (!strcmp(setting_table[i].path, path))
			return &setting_table[i];
	return NULL;
}

static const char *last_word(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

/* Finds the key with that last word in another section, or a section. */
static const char *elsewhere_find(const char *word)
{
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (!strcmp(last_word(setting_table[i].path), word))
			return setting_table[i].path;
	for (size_t i = 0; i < sizeof(other_name) / sizeof(other_name[0]); i++)
		if (!strcasecmp(other_name[i][0], word))
			return other_name[i][1];
	return section_find(word) ? word : NULL;
}

const char *setting_hint(const char *path, char out[HINT_MAX])
{
	const char *word[CONF_KEYS + SECTIONS], *near;

	for (size_t i = 0; i < CONF_KEYS; i++)
		word[i] = setting_table[i].path;
	for (size_t i = 0; i < SECTIONS; i++)
		word[CONF_KEYS + i] = section_table[i].name;
	near = nearest_word(span_of(path), word, CONF_KEYS + SECTIONS);
	if (!near)
		near = elsewhere_find(last_word(path));
	*out = '\0';
	if (near)
		snprintf(out, HINT_MAX, " (did you mean '%s'?)", near);
	return out;
}

/* Turns "a|b|c" into "a, b or c". */
static void words_range(const char *words, char out[RANGE_MAX])
{
	size_t at = 0, n;

	for (const char *word = words; *word && at < RANGE_MAX; word += n + (word[n] == '|')) {
		n = strcspn(word, "|");
		at += (size_t)snprintf(out + at, RANGE_MAX - at, "%s%.*s", word == words ? "" : word[n] ? ", " : " or ", (int)n, word);
	}
}

const char *setting_range(const struct setting *s, char out[RANGE_MAX])
{
	/* If `to` is set, the least value comes before it and the largest after it. */
	static const struct {
		const char *start, *to, *end;
	} form[] = {
		[TYPE_BOOL] = {.start = "yes or no"},
		[TYPE_COUNT] = {"a whole number from ", " to ", ""},
		[TYPE_SIZE] = {"a size from ", " to ", ""},
		[TYPE_DURATION] = {"a duration from ", " to ", ""},
		[TYPE_TEXT] = {"a text of ", " to ", " bytes"},
		[TYPE_FILENAME] = {.start = "the name of a file"},
		[TYPE_FOLDER] = {.start = "an absolute path"},
		[TYPE_SOCKET] = {.start = "a path of at most 107 bytes, or no"},
		[TYPE_LISTENER] = {.start = "an address with a port, or no"},
		[TYPE_WEB] = {.start = "an address with a port, unix:/path, or no"},
		[TYPE_HOSTS] = {"a list of ", " to ", " host names"},
		[TYPE_NODES] = {"a list of ", " to ", " addresses"},
		[TYPE_RULES] = {.start = "a list of rules"},
		[TYPE_GROUPS] = {"a mapping of ", " to ", " labels to patterns"},
	};

	if (s->type == TYPE_CHOICE)
		words_range(s->words, out);
	else if (form[s->type].to)
		snprintf(out, RANGE_MAX, "%s%s%s%s%s", form[s->type].start, s->low, form[s->type].to, s->high, form[s->type].end);
	else
		snprintf(out, RANGE_MAX, "%s", form[s->type].start);
	return out;
}
