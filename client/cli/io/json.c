/* SPDX-License-Identifier: BSD-2-Clause */
/* See json.h. */
#include "client/cli/io/json.h"
#include "proto/json.h"

#include <stdio.h>

static void put(void *to, const char *p, size_t n)
{
	fwrite(p, 1, n, to);
}

void json_print_text(struct span text)
{
	json_text(put, stdout, text);
}

static void print_member(bool *first, struct span name, struct redlock_bytes value)
{
	fputs(*first ? "" : ",", stdout);
	*first = false;
	json_member(put, stdout, name, (struct span){value.p, value.n});
}

/* The words before the fields; ERR has a text instead of fields. */
static void print_words(bool *first, const struct redlock_line *line)
{
	struct redlock_bytes code = redlock_line_code(line), reason = redlock_line_reason(line);

	print_member(first, SPAN("reply"), redlock_line_word(line));
	if (code.n)
		print_member(first, SPAN("code"), code);
	if (reason.n)
		print_member(first, SPAN("text"), reason);
}

void json_print_line(const struct redlock_line *line, bool with_words)
{
	bool first = true;
	size_t i;

	putchar('{');
	if (with_words)
		print_words(&first, line);
	for (i = 0; i < redlock_line_fields(line); i++) {
		struct redlock_bytes name = redlock_line_name(line, i);

		print_member(&first, (struct span){name.p, name.n}, redlock_line_value(line, i));
	}
	puts("}");
}
