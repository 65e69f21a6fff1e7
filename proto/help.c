/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer of HELP to people, line by line, made from the tables. No line has a quote, so that programs can read them as rows. */
#include "proto/proto.h"
#include "proto/text.h"

#define USAGE_COLUMNS 36 /* for requests; a longer one moves its help to the right */
#define FIELD_COLUMNS 24

/* The groups of the overview, each with its first request, in the order of command.def. */
static const struct {
	enum verb first;
	const char *title;
} group_table[] = {
	{VERB_HELLO, "Session:"}, {VERB_LOCK, "Locks:"}, {VERB_RATE, "Rate limits and semaphores:"},
	{VERB_DEFER, "Jobs:"},    {VERB_SHOW, "Look:"},  {VERB_BREAK, "For administrators:"},
};
#define GROUPS (sizeof(group_table) / sizeof(group_table[0]))

static void pen_pad(struct pen *pen, const char *start, size_t columns)
{
	size_t wide = 0;

	for (const char *at = start; at < pen->at; at++)
		wide += ((unsigned char)*at & 0xc0) != 0x80; /* counts characters, not bytes */
	do
		pen_text(pen, " ");
	while (++wide < columns);
}

/* Names the first of these fields, and hints at the others. */
static void pen_optional(struct pen *pen, uint32_t fields)
{
	unsigned first = 0;

	if (!fields)
		return;
	while (!((fields >> first) & 1))
		first++;
	pen_text(pen, " [");
	pen_text(pen, field_table[first].word);
	pen_text(pen, fields >> first == 1 ? "=…]" : "=… …]");
}

static size_t line_of_request(enum verb verb, struct pen pen)
{
	const struct command *command = &command_table[verb];
	char *start = pen.at;

	pen_text(&pen, "  ");
	pen_text(&pen, command->word);
	if (command->words[0]) {
		pen_text(&pen, " ");
		pen_text(&pen, command->words);
	}
	for (unsigned i = 0; i < FIELD_N; i++)
		if ((command->required >> i) & 1) {
			pen_text(&pen, " ");
			pen_field(&pen, i);
		}
	pen_optional(&pen, command->fields & ~command->required);
	pen_pad(&pen, start, USAGE_COLUMNS);
	pen_text(&pen, command->help);
	return (size_t)(pen.at - start);
}

/* The title of a group comes before its first request. */
static size_t overview_line(unsigned i, struct pen pen)
{
	char *start = pen.at;
	unsigned line = 0;

	for (unsigned verb = 0, group = 0; verb < VERB_N; verb++) {
		if (group < GROUPS && group_table[group].first == verb && line++ == i) {
			pen_text(&pen, group_table[group].title);
			return (size_t)(pen.at - start);
		}
		group += group < GROUPS && group_table[group].first == verb;
		if (line++ == i)
			return line_of_request((enum verb)verb, pen);
	}
	if (line == i)
		pen_text(&pen, "HELP LOCK explains the fields of LOCK; redlock-protocol(7) has the rest");
	return (size_t)(pen.at - start);
}

static bool one_has_type(uint32_t fields, enum value_type type)
{
	for (unsigned i = 0; i < FIELD_N; i++)
		if (((fields >> i) & 1) && field_table[i].type == type)
			return true;
	return false;
}

static size_t line_of_pair(struct pen pen, const char *form, const char *text)
{
	char *start = pen.at;

	pen_text(&pen, "  ");
	pen_text(&pen, form);
	pen_pad(&pen, start, FIELD_COLUMNS);
	pen_text(&pen, text);
	return (size_t)(pen.at - start);
}

static size_t line_of_field(struct pen pen, unsigned field)
{
	char form[64];
	struct pen in_form = {form, form + sizeof(form) - 1};

	pen_field(&in_form, field);
	*in_form.at = '\0';
	return line_of_pair(pen, form, field_table[field].help);
}

static size_t request_line(const struct command *command, unsigned i, struct pen pen)
{
	unsigned line = 0;

	for (unsigned field = 0; field < FIELD_N; field++)
		if (((command->fields >> field) & 1) && line++ == i)
			return line_of_field(pen, field);
	if ((one_has_type(command->fields, VALUE_DURATION) || one_has_type(command->fields, VALUE_WAIT)) && line++ == i)
		return line_of_pair(pen, value_table[VALUE_DURATION].form, value_table[VALUE_DURATION].meaning);
	return 0;
}

size_t help_line(enum verb verb, unsigned i, char *out, size_t size)
{
	struct pen pen = {out, out + size};

	if (verb == VERB_N)
		return overview_line(i, pen);
	if (i == 0)
		return command_usage(verb, out, size);
	if (i > 1)
		return request_line(&command_table[verb], i - 2, pen);
	pen_text(&pen, command_table[verb].help);
	return (size_t)(pen.at - out);
}
