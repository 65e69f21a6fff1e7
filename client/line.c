/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a line says: to the program that reads its fields, and to a person.
 */
#include "client/conn.h"
#include "client/person.h"

#include <errno.h>
#include <stdio.h>

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

const struct redlock_line *redlock_answer(const struct redlock *c)
{
	return c->answered ? &c->answer : NULL;
}

const char *redlock_errmsg(const struct redlock *c)
{
	return c->message;
}

const char *redlock_code(const struct redlock *c)
{
	return c->answered && c->answer.parsed.kind == LINE_ERR ? c->code : "";
}

int redlock_quote(struct redlock_bytes text, char *out, size_t size)
{
	size_t n = size ? quote((struct span){text.p, text.n}, out, size - 1) : 0;

	if (!n)
		return -EMSGSIZE;
	out[n] = '\0';
	return 0;
}

/* --- outcomes --- */

const char *conn_shown(struct span text, char out[SHOWN_BYTES])
{
	shown_text(text, out, SHOWN_BYTES);
	return out;
}

static int says_busy(struct redlock *c)
{
	struct span name = reply_find(&c->answer.parsed, "name"), holder = reply_find(&c->answer.parsed, "holder");
	int64_t held = reply_number(&c->answer.parsed, "held_ms", -1);
	char shown[SHOWN_BYTES], by[SHOWN_BYTES], age[AGE_BYTES];

	conn_shown(name, shown);
	conn_shown(holder.p ? holder : SPAN("somebody else"), by);
	if (held < 0)
		return conn_says(c, REDLOCK_BUSY, "%s is held by %s", shown, by);
	return conn_says(c, REDLOCK_BUSY, "%s is held by %s for %s", shown, by, age_text(held, age));
}

static int says_timeout(struct redlock *c)
{
	struct span name = reply_find(&c->answer.parsed, "name");
	char shown[SHOWN_BYTES], age[AGE_BYTES];

	return conn_says(c, REDLOCK_TIMEOUT, "%s was not free within %s", conn_shown(name, shown),
			 age_text(reply_number(&c->answer.parsed, "waited_ms", 0), age));
}

static int says_refused(struct redlock *c)
{
	struct span code = c->answer.parsed.code, text = c->answer.parsed.text;
	char shown[sizeof(c->message) - sizeof(c->code)];

	shown_text(code, c->code, sizeof(c->code));
	shown_text(text, shown, sizeof(shown));
	return conn_says(c, REDLOCK_REFUSED, "%s %s", c->code, shown);
}

int conn_outcome(struct redlock *c)
{
	switch (c->answer.parsed.kind) {
	case LINE_BUSY:
		return says_busy(c);
	case LINE_TIMEOUT:
		return says_timeout(c);
	case LINE_ERR:
		return says_refused(c);
	default:
		return REDLOCK_OK;
	}
}
