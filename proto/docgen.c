/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for the build, not part of the library: docgen <page. From the tables it renders the head of each request, and the lists of fields,
 * values and codes in redlock-protocol(7). The page has the marks of each request once, in any order.
 */
#include "proto/manual.h"
#include "proto/proto.h"

#define COLUMNS 72

static void put_sentence(const char *text)
{
	manual_text(text, strlen(text), COLUMNS);
}

/* Writes the words of a row: "name" is a placeholder, "1", "[all]" and "[a|b]" are literal. */
static void put_words(const char *words)
{
	bool optional = words[0] == '[', literal = strchr(words, '|') || words[0] == '1' || !strcmp(words, "[all]");
	struct span word = {words + optional, strlen(words) - (optional ? 2 : 0)};

	printf("%s%s%.*s\n", optional ? ".Op " : ".", literal ? "Cm " : "Ar ", (int)word.n, word.p);
}

/* Types whose form in a usage line is literal. */
static bool is_literal(enum value_type type)
{
	return type == VALUE_BOOL || type == VALUE_MODE || type == VALUE_TRACE;
}

static void put_field(const struct field_row *row)
{
	printf("Cm %s%s%s\n", row->word, is_literal(row->type) ? "=" : "= Ns Ar ", value_table[row->type].form);
}

static void put_given(uint32_t fields, const char *macro)
{
	for (unsigned i = 0; i < FIELD_N; i++) {
		if (!((fields >> i) & 1))
			continue;
		fputs(macro, stdout);
		put_field(&field_table[i]);
	}
}

static void put_request(const struct command *command)
{
	printf(".It Xo\n.Cm %s\n", command->word);
	if (command->most > 0)
		put_words(command->words);
	put_given(command->required, ".");
	put_given(command->fields & ~command->required, ".Op ");
	puts(".Xc");
	put_sentence(command->help);
}

static void put_fields(void)
{
	puts(".Bl -tag -width Ds");
	for (unsigned i = 0; i < FIELD_N; i++) {
		fputs(".It ", stdout);
		put_field(&field_table[i]);
		put_sentence(field_table[i].help);
	}
	puts(".El");
}

static void put_values(void)
{
	puts(".Bl -tag -width Ds");
	for (unsigned i = 0; i < VALUE_N; i++) {
		if (!strcmp(value_table[i].form, value_table[i].meaning))
			continue; /* the form explains itself */
		printf(".It Ar %s\n", value_table[i].form);
		put_sentence(value_table[i].meaning);
	}
	puts(".El");
}

static void put_codes(void)
{
	puts(".Bl -tag -width UNAVAILABLE");
	for (unsigned i = 0; i < ERROR_N; i++) {
		printf(".It Cm %s\n", error_table[i].word);
		put_sentence(error_table[i].meaning);
	}
	puts(".El");
}

static const struct {
	const char *what;
	void (*put)(void);
} list_table[] = {{"the fields", put_fields}, {"the values", put_values}, {"the codes", put_codes}};
#define LISTS ((unsigned)(sizeof(list_table) / sizeof(list_table[0])))
#define PARTS (VERB_N + LISTS)

static bool put_part(const char *name)
{
	static bool done[PARTS];
	unsigned part = 0;

	while (part < PARTS && strcmp(name, part < VERB_N ? command_table[part].word : list_table[part - VERB_N].what) != 0)
		part++;
	if (part == PARTS || done[part])
		return false;
	done[part] = true;
	if (part < VERB_N)
		put_request(&command_table[part]);
	else
		list_table[part - VERB_N].put();
	return true;
}

int main(void)
{
	return manual_render(put_part, PARTS);
}
