/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for the build, no part of the library. From the tables it renders the lists of requests, fields, values and codes of
 * redlock-protocol(7), between the marks of the page; the rest of the page stays.
 *
 *   docgen --write PAGE   renders the lists
 *   docgen --check PAGE   exits with 1 if --write would change the page
 */
#include "proto/proto.h"
#include "proto/text.h"

#include <errno.h>
#include <stdio.h>

#define PAGE_MAX (256 * 1024)
#define COLUMNS  72

static char before[PAGE_MAX], after[PAGE_MAX];

/* Writes text as lines of mdoc, broken at blanks, such that none of it is taken for a macro or an escape. */
static void put_text(struct pen *p, const char *text)
{
	size_t column = 0;

	if (*text == '.' || *text == '\'')
		pen_text(p, "\\&");
	for (; *text; text++, column++) {
		bool breaks = *text == ' ' && column + strcspn(text + 1, " ") >= COLUMNS && text[1] != '.' && text[1] != '\'';

		if (breaks)
			column = 0;
		if (*text == '\\')
			pen_text(p, "\\e");
		else
			pen_span(p, breaks ? SPAN("\n") : (struct span){text, 1});
	}
	pen_text(p, "\n");
}

static void put_number(struct pen *p, long long number)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%lld", number);
	pen_text(p, digits);
}

/* Writes the words of a row: "name" is a placeholder, "1", "[all]" and "[a|b]" are literal. */
static void put_words(struct pen *p, const char *words)
{
	bool optional = words[0] == '[', literal = strchr(words, '|') || words[0] == '1' || !strcmp(words, "[all]");
	struct span word = {words + optional, strlen(words) - (optional ? 2 : 0)};

	pen_text(p, optional ? ".Op " : ".");
	pen_text(p, literal ? "Cm " : "Ar ");
	pen_span(p, word);
	pen_text(p, "\n");
}

/* Types whose form in a usage line is literal. */
static bool is_literal(enum value_type type)
{
	return type == VALUE_BOOL || type == VALUE_MODE;
}

static void put_field(struct pen *p, const struct field_row *row)
{
	pen_text(p, "Cm ");
	pen_text(p, row->word);
	pen_text(p, is_literal(row->type) ? " Ns = Ns Cm " : " Ns = Ns Ar ");
	pen_text(p, value_form(row->type));
	pen_text(p, "\n");
}

static void put_given(struct pen *p, uint32_t fields, const char *macro)
{
	for (unsigned i = 0; i < FIELD_N; i++) {
		if (!((fields >> i) & 1))
			continue;
		pen_text(p, macro);
		put_field(p, &field_table[i]);
	}
}

static void put_requests(struct pen *p)
{
	pen_text(p, ".Bl -tag -width Ds\n");
	for (unsigned verb = 0; verb < VERB_N; verb++) {
		const struct command *command = &command_table[verb];

		pen_text(p, ".It Xo\n.Cm ");
		pen_text(p, command->word);
		pen_text(p, "\n");
		if (command->most > 0)
			put_words(p, command->words);
		put_given(p, command->required, ".");
		put_given(p, command->fields & ~command->required, ".Op ");
		pen_text(p, ".Xc\n");
		put_text(p, command->help);
	}
	pen_text(p, ".El\n");
}

/* Writes the requests that take the field, like "LOCK and EXTEND", each on its line. */
static void put_takers(struct pen *p, enum field field)
{
	unsigned left = 0;

	for (unsigned verb = 0; verb < VERB_N; verb++)
		left += (command_table[verb].fields >> field) & 1;
	for (unsigned verb = 0; verb < VERB_N; verb++) {
		if (!((command_table[verb].fields >> field) & 1))
			continue;
		pen_text(p, ".Cm ");
		pen_text(p, command_table[verb].word);
		left--;
		pen_text(p, left == 0 ? "\n" : left == 1 ? "\nand\n" : " ,\n");
	}
}

static void put_fields(struct pen *p)
{
	pen_text(p, ".Bl -tag -width Ds\n");
	for (unsigned i = 0; i < FIELD_N; i++) {
		const struct field_row *row = &field_table[i];

		pen_text(p, ".It ");
		put_field(p, row);
		put_text(p, row->help);
		if (row->type == VALUE_TEXT) {
			pen_text(p, "(at most ");
			put_number(p, row->most);
			pen_text(p, " bytes)\n");
		}
		pen_text(p, "\\(em\n");
		put_takers(p, (enum field)i);
	}
	pen_text(p, ".El\n");
}

static void put_values(struct pen *p)
{
	pen_text(p, ".Bl -tag -width Ds\n");
	for (unsigned i = 0; i < VALUE_N; i++) {
		if (!strcmp(value_form((enum value_type)i), value_meaning((enum value_type)i)))
			continue; /* the form explains itself */
		pen_text(p, ".It Ar ");
		pen_text(p, value_form((enum value_type)i));
		pen_text(p, "\n");
		put_text(p, value_meaning((enum value_type)i));
	}
	pen_text(p, ".El\n");
}

static void put_codes(struct pen *p)
{
	pen_text(p, ".Bl -tag -width UNAVAILABLE\n");
	for (unsigned i = 0; i < ERROR_N; i++) {
		pen_text(p, ".It Cm ");
		pen_text(p, error_word((enum error)i));
		pen_text(p, "\n");
		put_text(p, error_meaning((enum error)i));
	}
	pen_text(p, ".El\n");
}

static const struct {
	const char *begin, *end;
	void (*put)(struct pen *);
} sections[] = {
	{".\\\" BEGIN of the requests\n", ".\\\" END of the requests\n", put_requests},
	{".\\\" BEGIN of the fields\n", ".\\\" END of the fields\n", put_fields},
	{".\\\" BEGIN of the values\n", ".\\\" END of the values\n", put_values},
	{".\\\" BEGIN of the codes\n", ".\\\" END of the codes\n", put_codes},
};
#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* For each section: copies the page up to its mark, writes the section, and skips the old text. */
static int page_render(const char *page, struct pen *out)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		const char *begin = strstr(page, sections[i].begin);
		const char *end = begin ? strstr(begin, sections[i].end) : NULL;

		if (!end) {
			fprintf(stderr, "docgen: the page lacks, or has in another order: %s", sections[i].begin);
			return -1;
		}
		begin += strlen(sections[i].begin);
		pen_span(out, (struct span){page, (size_t)(begin - page)});
		sections[i].put(out);
		page = end;
	}
	pen_text(out, page);
	if (out->at == out->end) {
		fprintf(stderr, "docgen: the page is too long\n");
		return -1;
	}
	*out->at = '\0';
	return 0;
}

static int page_read(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t n;
	int error;

	if (!file)
		return -errno;
	n = fread(before, 1, sizeof(before) - 1, file);
	before[n] = '\0';
	error = ferror(file) ? EIO : 0;
	fclose(file);
	return -error;
}

static int page_write(const char *path)
{
	FILE *file = fopen(path, "w");
	int error;

	if (!file)
		return -errno;
	error = fputs(after, file) < 0 ? EIO : 0;
	if (fclose(file) && !error)
		error = errno;
	return -error;
}

static int fail(const char *path, int error)
{
	fprintf(stderr, "docgen: %s: %s\n", path, strerror(-error));
	return 2;
}

int main(int argc, char **argv)
{
	struct pen out = {after, after + sizeof(after)};
	bool writes = argc == 3 && !strcmp(argv[1], "--write");
	int error;

	if (argc != 3 || (!writes && strcmp(argv[1], "--check") != 0)) {
		fprintf(stderr, "usage: docgen --write PAGE | --check PAGE\n");
		return 2;
	}
	error = page_read(argv[2]);
	if (error)
		return fail(argv[2], error);
	if (page_render(before, &out))
		return 2;
	if (!strcmp(before, after))
		return 0;
	if (!writes) {
		fprintf(stderr, "docgen: %s is not what the tables say; render it anew\n", argv[2]);
		return 1;
	}
	error = page_write(argv[2]);
	return error ? fail(argv[2], error) : 0;
}
