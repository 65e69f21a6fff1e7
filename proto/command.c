/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of the protocol, made from the .def files, and lookups in them. All lists are made from the rows.
 */
#include "proto/proto.h"
#include "proto/text.h"

#define F(id)    (UINT64_C(1) << FIELD_##id)
#define MUST(id) (F(id) | F(id) << 32)

_Static_assert(FIELD_N <= 32, "the fields of a request are bits of a uint32_t");

const struct command command_table[VERB_N] = {
#define COMMAND(id, word, least, most, kind, words, given, help)                                                                 \
	{word, least, most, WORD_##kind, words, (uint32_t)((given) & UINT32_MAX), (uint32_t)((uint64_t)(given) >> 32), help},
#include "proto/command.def"
#undef COMMAND
};

const struct field_row field_table[FIELD_N] = {
#define FIELD(id, word, type, most, help) {word, VALUE_##type, most, help},
#include "proto/field.def"
};

const struct value_row value_table[VALUE_N] = {
#define VALUE(id, form, meaning) {form, meaning},
#include "proto/value.def"
#undef VALUE
};

const struct error_row error_table[ERROR_N] = {
#define ERROR(id, word, meaning) {word, meaning},
#include "proto/error.def"
#undef ERROR
};

/* What a lookup compares. */
struct entry {
	uint64_t key;
	size_t n;
	const char *word;
};
#define ENTRY(word) {WORD_KEY(word), sizeof(word) - 1, word}

static const struct entry command_entries[VERB_N] = {
#define COMMAND(id, word, ...) ENTRY(word),
#include "proto/command.def"
#undef COMMAND
};

static const struct entry field_entries[FIELD_N] = {
#define FIELD(id, word, ...) ENTRY(word),
#include "proto/field.def"
};

/* Returns the index of the word, or count. If a word has up to eight bytes, its key contains all of them. */
static unsigned entry_find(const struct entry *entries, unsigned count, struct span word)
{
	uint64_t key = word_key(word);

	for (unsigned i = 0; i < count; i++)
		if (entries[i].key == key && entries[i].n == word.n && (word.n <= sizeof(key) || word_is(word, entries[i].word)))
			return i;
	return count;
}

enum verb command_find(struct span word)
{
	unsigned i = entry_find(command_entries, VERB_N, word);

	if (i == VERB_N && word_is(word, "?"))
		return VERB_HELP;
	if (i == VERB_N && word_is(word, "EXIT"))
		return VERB_QUIT;
	return (enum verb)i;
}

enum field field_find(struct span word)
{
	return (enum field)entry_find(field_entries, FIELD_N, word);
}

const char *command_nearest(struct span word)
{
	const char *words[VERB_N];

	for (unsigned i = 0; i < VERB_N; i++)
		words[i] = command_table[i].word;
	return nearest_word(word, words, VERB_N);
}

const char *field_nearest(struct span word, uint32_t fields)
{
	const char *words[FIELD_N];
	size_t count = 0;

	for (unsigned i = 0; i < FIELD_N; i++)
		if ((fields >> i) & 1)
			words[count++] = field_table[i].word;
	return nearest_word(word, words, count);
}

void pen_field(struct pen *pen, unsigned field)
{
	pen_text(pen, field_table[field].word);
	pen_text(pen, "=");
	pen_text(pen, value_table[field_table[field].type].form);
}

static void pen_fields(struct pen *pen, uint32_t fields, const char *before, const char *after)
{
	for (unsigned i = 0; i < FIELD_N; i++) {
		if (!((fields >> i) & 1))
			continue;
		pen_text(pen, before);
		pen_field(pen, i);
		pen_text(pen, after);
	}
}

size_t command_usage(enum verb verb, char *out, size_t size)
{
	const struct command *command = &command_table[verb];
	struct pen pen = {out, out + size};

	pen_text(&pen, command->word);
	if (command->words[0]) {
		pen_text(&pen, " ");
		pen_text(&pen, command->words);
	}
	pen_fields(&pen, command->required, " ", "");
	pen_fields(&pen, command->fields & ~command->required, " [", "]");
	return (size_t)(pen.at - out);
}
