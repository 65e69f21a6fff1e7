/* SPDX-License-Identifier: BSD-2-Clause */
/* See field.h. */
#include "client/cli/io/field.h"
#include "client/lib/display.h"
#include "proto/json.h"

#include <inttypes.h>
#include <stdio.h>

struct span field_of(const struct redlock_line *line, const char *field)
{
	struct redlock_bytes value = redlock_line_find(line, field);

	return (struct span){value.p, value.n};
}

bool field_is(const struct redlock_line *line, const char *field, const char *text)
{
	struct span value = field_of(line, field);

	return value.p && span_equal(value, span_of(text));
}

size_t field_show(const struct redlock_line *line, const char *field, char *out, size_t size)
{
	return shown_text(field_of(line, field), out, size);
}

bool field_is_duration(struct span field)
{
	return field.n > 3 && !memcmp(field.p + field.n - 3, "_ms", 3);
}

const char *shown(const char *name, char out[SHOWN_BYTES])
{
	shown_text(span_of(name), out, SHOWN_BYTES);
	return out;
}

const char *rtt_text(int64_t us, char out[RTT_BYTES])
{
	snprintf(out, RTT_BYTES, "%" PRId64 ".%02d ms", us / 1000, (int)(us % 1000 / 10));
	return out;
}

/* --- JSON --- */

static void put(void *to, const char *p, size_t n)
{
	fwrite(p, 1, n, to);
}

void json_print_text(const char *before, const char *text)
{
	fputs(before, stdout);
	json_text(put, stdout, span_of(text));
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

	putchar('{');
	if (with_words)
		print_words(&first, line);
	for (size_t i = 0; i < redlock_line_fields(line); i++) {
		struct redlock_bytes name = redlock_line_name(line, i);

		print_member(&first, (struct span){name.p, name.n}, redlock_line_value(line, i));
	}
	puts("}");
}
