/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Renders the documentation of the keys from the table: the example file, and the keys of the manual page, which replace the
 * text between its two marks.
 *
 *   conf-docgen example            the example file, to standard output
 *   conf-docgen manual <page       the page with its keys rendered anew
 */
#include "conf/schema.h"
#include "conf/words.h"
#include "proto/manual.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH      98 /* columns of the comments in the example */
#define MDOC_WIDTH 78

static const char preface[] = "redlockd.yaml: the configuration of redlockd; the manual is redlockd.yaml(5).\n"
			      "\n"
			      "Every key stands here with its default, or as a comment where there is none; an empty file\n"
			      "means the same.\n"
			      "Durations have a unit: us, ms, s, m or h. Sizes are bytes, or k, m or g of them (1k is 1024).\n"
			      "redlockd --check-config says what is wrong with a file; --dump-config prints the result.\n"
			      "A key marked with * takes effect at a reload (SIGHUP), any other key at a restart.\n";

/* Prints text[0..n) in lines of at most WIDTH columns, each after the indent and "# ". */
static void comment_wrap(const char *indent, const char *text, size_t n)
{
	while (n) {
		size_t take = manual_line(text, n, WIDTH - strlen(indent) - 2);

		printf("%s# %.*s\n", indent, (int)take, text);
		take += take < n;
		text += take;
		n -= take;
	}
}

static void preface_print(void)
{
	for (const char *p = preface; *p; p += strcspn(p, "\n") + 1) {
		size_t n = strcspn(p, "\n");

		if (n)
			comment_wrap("", p, n);
		else
			puts("#");
	}
}

static void default_print(const struct setting *s, FILE *out)
{
	if (!s->given)
		fputs(s->unset, out);
	else if (s->type == TYPE_TEXT)
		text_print(s->given, out);
	else
		fputs(s->given, out);
}

/* Returns "Takes a duration from 1ms to 10s; the default is 50ms." */
static char *range_text(const struct setting *s)
{
	char range[RANGE_MAX], *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		abort();
	fprintf(out, "Takes %s; %s", setting_range(s, range), s->given ? "the default is " : "without it: ");
	default_print(s, out);
	fputc('.', out);
	if (fclose(out))
		abort();
	return text;
}

static void example_key(const struct setting *s, const char *indent)
{
	char *range = range_text(s);

	comment_wrap(indent, s->help, strlen(s->help));
	comment_wrap(indent, range, strlen(range));
	free(range);
	if (!s->given) {
		printf("%s#%s: %s\n", indent, setting_leaf(s), s->example);
		return;
	}
	printf("%s%s: ", indent, setting_leaf(s));
	default_print(s, stdout);
	puts(s->live ? "  # *" : "");
}

static void example_print(void)
{
	const struct section *now = NULL;

	preface_print();
	for (size_t i = 0; i < CONF_KEYS; i++) {
		const struct section *section = setting_section(&setting_table[i]);

		if (section && section != now) {
			putchar('\n');
			comment_wrap("", section->help, strlen(section->help));
			printf("%s:\n", section->name);
		} else {
			putchar('\n');
		}
		now = section;
		example_key(&setting_table[i], section ? "  " : "");
	}
}

/* Prints each sentence on a new line. */
static void mdoc_sentences(const char *text)
{
	const char *end;

	for (; (end = strstr(text, ". ")); text = end + 2)
		manual_text(text, (size_t)(end - text) + 1, MDOC_WIDTH);
	manual_text(text, strlen(text), MDOC_WIDTH);
}

static void manual_key(const struct setting *s)
{
	char *range = range_text(s);

	printf(".It Cm %s\n", s->path);
	mdoc_sentences(s->help);
	manual_text(range, strlen(range), MDOC_WIDTH);
	free(range);
	if (s->live)
		puts("A reload puts it into effect.");
}

static bool manual_keys(const char *name)
{
	const struct section *now = NULL;
	bool open = false;

	for (size_t i = 0; i < CONF_KEYS; i++) {
		const struct section *section = setting_section(&setting_table[i]);

		if (i && section != now)
			puts(".El");
		if (!i || section != now) {
			printf(".Ss %s\n", section ? section->name : setting_table[i].key == KEY_RULES ? "Rules" : open ? "Leases" : "Store");
			if (section)
				mdoc_sentences(section->help);
			puts(".Bl -tag -width Ds");
			open = open || !section;
		}
		now = section;
		manual_key(&setting_table[i]);
	}
	puts(".El");
	return strcmp(name, "the keys") == 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "manual"))
		return manual_render(manual_keys, 1);
	if (argc != 2 || strcmp(argv[1], "example") != 0) {
		fputs("usage: conf-docgen example | manual <page\n", stderr);
		return EXIT_FAILURE;
	}
	example_print();
	return EXIT_SUCCESS;
}
