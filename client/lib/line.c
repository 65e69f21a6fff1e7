/* SPDX-License-Identifier: BSD-2-Clause */
/* See line.h. */
#include "client/lib/line.h"
#include "client/lib/boottime.h"
#include "client/lib/display.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#define FIRST ((size_t)512)

int buffer_grow(struct buffer *room, size_t n)
{
	size_t size = MAX(MAX(n, FIRST), 2 * room->size);
	char *p;

	if (n <= room->size)
		return 0;
	p = realloc(room->p, size);
	if (!p)
		return -ENOMEM;
	room->p = p;
	room->size = size;
	return 0;
}

void buffer_release(struct buffer *room)
{
	free(room->p);
	*room = (struct buffer){NULL, 0};
}

/* --- lines --- */

int line_take(struct redlock_line *line, const char *from, size_t n)
{
	int r = buffer_grow(&line->room, 2 * n + 1); /* so that an empty line has room, too */

	if (r)
		return r;
	line->n = n;
	line->text = memcpy(line->room.p, from, n);
	r = reply_parse(memcpy(line->text + n, from, n), n, &line->parsed);
	return r > 0 ? -ENOMSG : r ? -EPROTO : 0;
}

void line_copy(const struct redlock_line *line, const char *field, char *out, size_t size)
{
	struct span text = reply_find(&line->parsed, field);
	size_t n = text.n < size ? text.n : 0;

	memcpy(out, n ? text.p : "", n);
	out[n] = '\0';
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
	return bytes_of(line_kind_word(line->parsed.kind));
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

/* --- what an answer means --- */

int redlock_error_set(char *out, size_t size, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out, size, format, args);
	va_end(args);
	return err;
}

#define SHOWN_BYTES 200
#define HOST_BYTES  48 /* of these, for the name of a host */

/* Nobody holds the lock: its last holder has kept it for a while. */
static void kept_text(const struct reply_line *answer, const char *name, char *out)
{
	struct span by = reply_find(answer, "kept_by");
	char host[SHOWN_BYTES] = "", more[AGE_BYTES], ago[AGE_BYTES];

	if (by.p)
		shown_text(by, host, sizeof(host));
	snprintf(out, MESSAGE_BYTES, "%s is kept for %s more since it ran %s ago%s%s", name, age_text(reply_number(answer, "retry_ms", 0), more),
	         age_text(reply_number(answer, "kept_ms", 0), ago), by.p ? " on " : "", host);
}

/* Writes "worker 7 pid=1 uid=2 @db3". For a holder on another host it shows as much as that host has sent. */
static void holder_text(const struct reply_line *answer, char out[SHOWN_BYTES])
{
	struct span holder = reply_find(answer, "holder"), who = reply_find(answer, "who");
	size_t at = who.p ? shown_text(who, out, SHOWN_BYTES - HOST_BYTES) : 0;

	if (at > 0)
		out[at++] = ' ';
	shown_text(holder.p ? holder : SPAN("somebody else"), out + at, SHOWN_BYTES - at);
}

static void busy_text(const struct reply_line *answer, char *out)
{
	struct span name = reply_find(answer, "name"), holder = reply_find(answer, "holder");
	int64_t held = reply_number(answer, "held_ms", -1);
	char shown[SHOWN_BYTES], by[SHOWN_BYTES], age[AGE_BYTES];

	shown_text(name, shown, sizeof(shown));
	if (!holder.p && reply_number(answer, "kept_ms", -1) >= 0) {
		kept_text(answer, shown, out);
		return;
	}
	holder_text(answer, by);
	if (held < 0)
		snprintf(out, MESSAGE_BYTES, "%s is held by %s", shown, by);
	else
		snprintf(out, MESSAGE_BYTES, "%s is held by %s for %s", shown, by, age_text(held, age));
}

static void timeout_text(const struct reply_line *answer, char *out)
{
	char shown[SHOWN_BYTES], age[AGE_BYTES];

	shown_text(reply_find(answer, "name"), shown, sizeof(shown));
	snprintf(out, MESSAGE_BYTES, "%s was not free within %s", shown, age_text(reply_number(answer, "waited_ms", 0), age));
}

static void refused_text(const struct reply_line *answer, char *code, char *out)
{
	char shown[MESSAGE_BYTES - CODE_BYTES];

	shown_text(answer->code, code, CODE_BYTES);
	shown_text(answer->text, shown, sizeof(shown));
	snprintf(out, MESSAGE_BYTES, "%s %s", code, shown);
}

int outcome_of(const struct reply_line *answer, char ret_code[CODE_BYTES], char ret_message[MESSAGE_BYTES])
{
	switch (answer->kind) {
	case LINE_BUSY:
		busy_text(answer, ret_message);
		return REDLOCK_BUSY;
	case LINE_TIMEOUT:
		timeout_text(answer, ret_message);
		return REDLOCK_TIMEOUT;
	case LINE_ERR:
		refused_text(answer, ret_code, ret_message);
		return REDLOCK_REFUSED;
	default:
		return REDLOCK_OK;
	}
}
