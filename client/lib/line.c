/* SPDX-License-Identifier: BSD-2-Clause */
/* See line.h. */
#include "client/lib/line.h"
#include "client/lib/boottime.h"

#include <errno.h>
#include <sys/param.h>

int line_fill(struct redlock_line *line, const char *from, size_t n)
{
	int r;

	line->n = n;
	memcpy(line->text, from, n);
	memcpy(line->scratch, from, n);
	r = reply_parse(line->scratch, n, &line->parsed);
	return r > 0 ? -ENOMSG : r ? -EPROTO : 0;
}

int line_take(struct redlock_line *line, const char *from, size_t n)
{
	if (buffer_grow(&line->room, 2 * n + 1)) /* an empty line has a place, too */
		return -ENOMEM;
	line->text = line->room.p;
	line->scratch = line->room.p + n;
	return line_fill(line, from, n);
}

void line_release(struct redlock_line *line)
{
	buffer_release(&line->room);
}

int64_t line_bounded(const struct reply_line *line, const char *field, int64_t otherwise)
{
	const int64_t most = DURATION_MAX / US_PER_MS;

	return MAX(-most, MIN(reply_number(line, field, otherwise), most));
}

static struct redlock_bytes bytes_of(struct span span)
{
	return (struct redlock_bytes){span.p, span.n};
}

struct redlock_bytes redlock_line_text(const struct redlock_line *line)
{
	return (struct redlock_bytes){line->text, line->n};
}

struct redlock_bytes redlock_line_word(const struct redlock_line *line)
{
	static const struct span words[] = {
		[LINE_OK] = {"OK", 2},   [LINE_BUSY] = {"BUSY", 4}, [LINE_TIMEOUT] = {"TIMEOUT", 7},
		[LINE_ERR] = {"ERR", 3}, [LINE_ROW] = {"*", 1},     [LINE_PUSH] = {"!", 1},
	};

	return bytes_of(words[line->parsed.kind]);
}

struct redlock_bytes redlock_line_code(const struct redlock_line *line)
{
	return bytes_of(line->parsed.code);
}

struct redlock_bytes redlock_line_reason(const struct redlock_line *line)
{
	return bytes_of(line->parsed.text);
}

bool redlock_line_is(const struct redlock_line *line, const char *code)
{
	return span_equal(line->parsed.code, span_of(code));
}

size_t redlock_line_fields(const struct redlock_line *line)
{
	return line->parsed.fields;
}

struct redlock_bytes redlock_line_name(const struct redlock_line *line, size_t i)
{
	return i < line->parsed.fields ? bytes_of(line->parsed.field[i].name) : (struct redlock_bytes){NULL, 0};
}

struct redlock_bytes redlock_line_value(const struct redlock_line *line, size_t i)
{
	return i < line->parsed.fields ? bytes_of(line->parsed.field[i].value) : (struct redlock_bytes){NULL, 0};
}

struct redlock_bytes redlock_line_find(const struct redlock_line *line, const char *field)
{
	return bytes_of(reply_find(&line->parsed, field));
}

int64_t redlock_line_number(const struct redlock_line *line, const char *field, int64_t otherwise)
{
	return reply_number(&line->parsed, field, otherwise);
}

int redlock_quote(struct redlock_bytes text, char *out, size_t size)
{
	size_t n = size ? quote((struct span){text.p, text.n}, out, size - 1) : 0;

	if (!n)
		return -EMSGSIZE;
	out[n] = '\0';
	return 0;
}
