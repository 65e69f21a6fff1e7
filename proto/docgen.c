/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for the build, no part of the library. From the tables it renders the head of each request and the lists of fields, values and codes of
 * redlock-protocol(7), between the marks of the page; the rest of the page stays. The page has the marks of each request once, in any order.
 *
 *   docgen --write PAGE   renders them
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
	return type == VALUE_BOOL || type == VALUE_MODE || type == VALUE_TRACE;
}

static void put_field(struct pen *p, const struct field_row *row)
{
	pen_text(p, "Cm ");
	pen_text(p, row->word);
	pen_text(p, is_literal(row->type) ? "=" : "= Ns Ar ");
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

static void put_request(struct pen *p, const struct command *command)
{
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

static void put_fields(struct pen *p)
{
	pen_text(p, ".Bl -tag -width Ds\n");
	for (unsigned i = 0; i < FIELD_N; i++) {
		pen_text(p, ".It ");
		put_field(p, &field_table[i]);
		put_text(p, field_table[i].help);
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
	const char *what;
	void (*put)(struct pen *);
} list_table[] = {{"the fields", put_fields}, {"the values", put_values}, {"the codes", put_codes}};
#define LISTS ((unsigned)(sizeof(list_table) / sizeof(list_table[0])))
#define PARTS (VERB_N + LISTS)

static const char *part_name(unsigned part)
{
	return part < VERB_N ? command_table[part].word : list_table[part - VERB_N].what;
}

static void put_part(struct pen *p, unsigned part)
{
	if (part < VERB_N)
		put_request(p, &command_table[part]);
	else
		list_table[part - VERB_N].put(p);
}

/* Copies what is before the next mark, and the mark, to out. Returns the part that begins there, or PARTS if none does, and sets *page behind the mark. */
static unsigned part_next(const char **page, struct pen *out)
{
	static const char mark[] = ".\\\" BEGIN of ";
	const char *begin = strstr(*page, mark), *name = begin ? begin + strlen(mark) : NULL;
	unsigned part = 0;

	if (!begin)
		return PARTS;
	while (part < PARTS && (strncmp(name, part_name(part), strlen(part_name(part))) != 0 || name[strlen(part_name(part))] != '\n'))
		part++;
	name += strcspn(name, "\n");
	pen_span(out, (struct span){*page, (size_t)(name + 1 - *page)});
	*page = name + 1;
	return part;
}

/* The end of the part that begins at page; NULL if its mark is missing. */
static const char *part_end(const char *page, unsigned part)
{
	char mark[64];

	snprintf(mark, sizeof(mark), "\n.\\\" END of %s\n", part_name(part));
	page = strstr(page - 1, mark);
	return page ? page + 1 : NULL;
}

/* For each part: copies the page up to its mark, writes the part, and skips the old text. */
static int page_render(const char *page, struct pen *out)
{
	unsigned seen[PARTS] = {0};

	for (unsigned part; (part = part_next(&page, out)) < PARTS; seen[part]++) {
		page = part_end(page, part);
		if (!page) {
			fprintf(stderr, "docgen: the page lacks the end of %s\n", part_name(part));
			return -1;
		}
		put_part(out, part);
	}
	for (unsigned part = 0; part < PARTS; part++)
		if (seen[part] != 1) {
			fprintf(stderr, "docgen: the page has %u times: BEGIN of %s\n", seen[part], part_name(part));
			return -1;
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
