/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a line into REPLY_MAX bytes. A field is written as a whole or left out, and the place of the LF is reserved from the
 * start, so no argument can make a line too long.
 */
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
	pen_text(&pen, error_word(code));
	pen_text(&pen, " ");
	for (char *at = pen.at; *text && at < pen.end; text++, pen.at = at)
		*at++ = byte_is_control((unsigned char)*text) ? '?' : *text;
	r->at = pen.at;
}

/* Writes " field=" at r->at without moving it. Returns the place of the value; NULL: a value of `least` bytes does not fit. */
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

#define NUMBER_MAX 20 /* characters of INT64_MIN; number_write needs an even number */

/* Writes 00 to 99 in front of `at`; returns its place. */
static inline char *pair_write(char *at, unsigned pair)
{
	static const char pairs[] =
		"0001020304050607080910111213141516171819"
		"2021222324252627282930313233343536373839"
		"4041424344454647484950515253545556575859"
		"6061626364656667686970717273747576777879"
		"8081828384858687888990919293949596979899";

	return memcpy(at - 2, pairs + 2 * pair, 2);
}

/* Writes the number in front of `end`; returns its first character. A division by 10000 yields four digits at once. */
static inline char *number_write(char *end, int64_t value)
{
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	unsigned four;
	char *first = end;

	for (; rest >= 10000; rest /= 10000) {
		four = (unsigned)(rest % 10000);
		first = pair_write(first, four % 100);
		first = pair_write(first, four / 100);
	}
	four = (unsigned)rest;
	if (four >= 100)
		first = pair_write(first, four % 100);
	first = pair_write(first, four >= 100 ? four / 100 : four);
	first += *first == '0';
	if (value < 0)
		*--first = '-';
	return first;
}

void reply_put_int(struct reply *r, struct span field, int64_t value)
{
	char digits[NUMBER_MAX], *end = digits + NUMBER_MAX, *first = number_write(end, value);
	size_t n = (size_t)(end - first);
	char *to = field_open(r, field, n);

	if (!to)
		return;
	memcpy(to, first, n);
	r->at = to + n;
}

void reply_put_ms(struct reply *r, struct span field, int64_t us)
{
	reply_put_int(r, field, us > 0 ? us / 1000 : 0);
}

void reply_put_text(struct reply *r, struct span field, struct span value)
{
	char *to = field_open(r, field, 0);
	size_t n = to ? quote(value, to, (size_t)(r->end - to)) : 0;

	if (n > 0)
		r->at = to + n;
}

size_t reply_end(struct reply *r)
{
	*r->at++ = '\n';
	return (size_t)(r->at - r->start);
}
