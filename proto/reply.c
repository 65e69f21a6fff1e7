/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a line into REPLY_MAX bytes, or more (reply_widen). A field is written completely or left out, and a byte for the LF is reserved from the
 * start. So no argument can make a line too long.
 */
#include "proto/decimal.h"
#include "proto/proto.h"
#include "proto/text.h"

void reply_put_word(struct reply *r, char *out, struct span tag, struct span word)
{
	struct pen pen = {out, out + REPLY_MAX - 1};

	if (tag.n > 0) {
		pen_span(&pen, SPAN("@"));
		pen_span(&pen, tag);
		pen_span(&pen, SPAN(" "));
	}
	pen_span(&pen, word);
	*r = (struct reply){out, pen.at, pen.end};
}

void reply_error(struct reply *r, char *out, struct span tag, enum error code, const char *text)
{
	struct pen pen;

	reply_begin(r, out, tag, "ERR ");
	pen = (struct pen){r->at, r->end};
	pen_text(&pen, error_table[code].word);
	pen_text(&pen, " ");
	for (char *at = pen.at; *text && at < pen.end; text++, pen.at = at)
		*at++ = byte_is_control((unsigned char)*text) ? '?' : *text;
	r->at = pen.at;
}

/* Writes " field=" at r->at without moving it. Returns where the value begins; NULL: a value of `least` bytes does not fit. */
static inline char *field_open(const struct reply *r, struct span field, size_t least)
{
	char *at = r->at;

	if ((size_t)(r->end - at) < field.n + 2 + least)
		return NULL;
	*at++ = ' ';
	memcpy(at, field.p, field.n);
	at += field.n;
	*at++ = '=';
	return at;
}

void reply_put_int(struct reply *r, struct span field, int64_t value)
{
	char digits[2 * DECIMAL_MAX] = {0}, *end = digits + DECIMAL_MAX, *first = decimal_write_signed(end, value);
	size_t n = (size_t)(end - first);
	char *to = field_open(r, field, n);

	if (!to)
		return;
	if (r->end - to >= DECIMAL_MAX)
		memcpy(to, first, DECIMAL_MAX); /* a size that the compiler knows; later output overwrites the bytes after the number */
	else
		memcpy(to, first, n);
	r->at = to + n;
}

void reply_put_text(struct reply *r, struct span field, struct span value)
{
	char *to = field_open(r, field, 0);
	size_t n = to ? quote(value, to, (size_t)(r->end - to)) : 0;

	if (n > 0)
		r->at = to + n;
}

void reply_put_line(struct reply *r, struct span text)
{
	struct pen pen = {r->at, r->end};

	pen_text(&pen, " ");
	pen_span(&pen, text);
	r->at = pen.at;
}

size_t reply_end(struct reply *r)
{
	*r->at++ = '\n';
	return (size_t)(r->at - r->start);
}
