/* SPDX-License-Identifier: BSD-2-Clause */
/* See fields.h. It recurses nowhere: objects and lists inside the object are refused. */
#include "daemon/api/fields.h"

#include "daemon/web/translate.h"
#include "proto/text.h"

#include <stdarg.h>
#include <stdio.h>

#define KEY_MOST  32
#define TEXT_MOST 2048 /* bytes of a value: more than any field may have */

void fields_init(struct fields *f)
{
	*f = (struct fields){.heartbeat_us = -1};
	buf_init(&f->text);
}

void fields_release(struct fields *f)
{
	buf_release(&f->text);
}

void fields_put(struct fields *f, const char *text)
{
	buf_append(&f->text, text, strlen(text));
}

static bool __attribute__((format(printf, 2, 3))) refuse(struct fields *f, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(f->why, sizeof(f->why), format, values);
	va_end(values);
	return false;
}

static bool key_is_word(struct span key)
{
	for (size_t i = 0; i < key.n; i++)
		if ((key.p[i] < 'a' || key.p[i] > 'z') && key.p[i] != '_')
			return false;
	return key.n > 0 && key.n <= KEY_MOST;
}

static bool field_add(struct fields *f, struct span key, struct span value)
{
	char quoted[TEXT_MOST * 4 + 3], shown[SHOWN_MAX];
	size_t at = buf_length(&f->text), n;
	enum field field;

	if (!key_is_word(key))
		return refuse(f, "%s is no field: a field is a word of small letters, like wait", text_shown(key, shown));
	n = value.n <= TEXT_MOST ? quote(value, quoted, sizeof(quoted)) : 0;
	if (n == 0)
		return refuse(f, "the value of %.*s is too long", (int)key.n, key.p);
	if (at + key.n + n + 2 > FIELDS_MOST)
		return refuse(f, "all fields together are too long");
	buf_printf(&f->text, " %.*s=%.*s", (int)key.n, key.p, (int)n, quoted);
	field = field_find(key);
	if (field == FIELD_N)
		return true;
	f->given |= UINT32_C(1) << field;
	if (field == FIELD_OWNER) {
		f->owner = at;
		f->owner_n = buf_length(&f->text) - at;
	} else if (field == FIELD_WAIT) {
		f->waits = duration_parse(value) != 0;
	} else if (field == FIELD_HEARTBEAT) {
		f->heartbeat_us = duration_parse(value);
	}
	return true;
}

/* --- the query of a URL --------------------------------------------------------------------------------------------- */

bool fields_of_query(struct fields *f, const char *query)
{
	for (size_t n; query && *query; query += n + (query[n] == '&')) {
		char value[TEXT_MOST];
		size_t key, length = 0;

		n = strcspn(query, "&");
		if (n == 0)
			continue;
		key = strcspn(query, "=&");
		if (key < n && !url_decode((struct span){query + key + 1, n - key - 1}, true, value, sizeof(value), &length))
			return refuse(f, "the query of the URL is malformed, or has a value that is too long");
		if (!field_add(f, (struct span){query, key}, (struct span){value, length}))
			return false;
	}
	return true;
}

/* --- the JSON of a body --------------------------------------------------------------------------------------------- */

struct reader {
	const char *begin, *at, *end;
	char text[TEXT_MOST + 4]; /* the text that was last read; a longer one is cut, and has more than TEXT_MOST bytes */
	size_t n;
};

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->at++;
}

static bool takes(struct reader *r, char c)
{
	skip_blanks(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* Four hexadecimal digits; -1: there are none. */
static int hex4(struct reader *r)
{
	int value = 0;

	for (int i = 0; i < 4; i++, r->at++) {
		if (r->at == r->end || hex_digit(*r->at) < 0)
			return -1;
		value = value << 4 | hex_digit(*r->at);
	}
	return value;
}

static void put_rune(struct reader *r, int rune)
{
	char *to = r->text + r->n;

	if (rune < 0x80) {
		to[0] = (char)rune;
		r->n += 1;
	} else if (rune < 0x800) {
		to[0] = (char)(0xc0 | rune >> 6);
		to[1] = (char)(0x80 | (rune & 63));
		r->n += 2;
	} else if (rune < 0x10000) {
		to[0] = (char)(0xe0 | rune >> 12);
		to[1] = (char)(0x80 | (rune >> 6 & 63));
		to[2] = (char)(0x80 | (rune & 63));
		r->n += 3;
	} else {
		to[0] = (char)(0xf0 | rune >> 18);
		to[1] = (char)(0x80 | (rune >> 12 & 63));
		to[2] = (char)(0x80 | (rune >> 6 & 63));
		to[3] = (char)(0x80 | (rune & 63));
		r->n += 4;
	}
}

/* A lone low surrogate of a byte is that byte, as in answers (proto/json.h). No other surrogate may be alone. */
static bool read_unicode(struct reader *r)
{
	int rune = hex4(r), low;

	if (rune >= 0xdc80 && rune <= 0xdcff) {
		r->text[r->n++] = (char)(rune & 0xff);
		return true;
	}
	if (rune >= 0xd800 && rune < 0xdc00) {
		if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
			return false;
		r->at += 2;
		low = hex4(r);
		if (low < 0xdc00 || low > 0xdfff)
			return false;
		rune = 0x10000 + (rune - 0xd800) * 0x400 + (low - 0xdc00);
	}
	if (rune < 0 || (rune >= 0xdc00 && rune <= 0xdfff))
		return false;
	put_rune(r, rune);
	return true;
}

static bool read_escape(struct reader *r)
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *which;

	if (r->at == r->end)
		return false;
	if (*r->at == 'u') {
		r->at++;
		return read_unicode(r);
	}
	which = *r->at ? strchr(letters, *r->at++) : NULL;
	if (!which)
		return false;
	r->text[r->n++] = bytes[which - letters];
	return true;
}

/* Begins after the opening quote. */
static bool read_text(struct reader *r)
{
	for (r->n = 0; r->at < r->end;) {
		unsigned char c = (unsigned char)*r->at++;

		if (c == '"')
			return true;
		if (r->n > TEXT_MOST)
			r->n = TEXT_MOST;
		if (c < 0x20)
			return false;
		if (c != '\\')
			r->text[r->n++] = (char)c;
		else if (!read_escape(r))
			return false;
	}
	return false;
}

/* A number, true, false or null: the bytes up to the next delimiter. */
static bool read_bare(struct reader *r, struct span *ret_value)
{
	const char *from = r->at;

	while (r->at < r->end && ((*r->at | 32) >= 'a' && (*r->at | 32) <= 'z'))
		r->at++;
	if (r->at == from)
		while (r->at < r->end && strchr("+-.0123456789eE", *r->at) && *r->at)
			r->at++;
	*ret_value = (struct span){from, (size_t)(r->at - from)};
	if (span_equal(*ret_value, SPAN("true")))
		*ret_value = SPAN("yes");
	else if (span_equal(*ret_value, SPAN("false")))
		*ret_value = SPAN("no");
	else if (span_equal(*ret_value, SPAN("null")))
		*ret_value = (struct span){NULL, 0};
	else
		return ret_value->n > 0 && (*from == '-' || (*from >= '0' && *from <= '9'));
	return true;
}

static bool broken(struct fields *f, const struct reader *r, const char *what)
{
	return refuse(f, "the body is no JSON object of texts and numbers: %s at byte %zu", what, (size_t)(r->at - r->begin) + 1);
}

static bool read_member(struct fields *f, struct reader *r)
{
	struct span key, value;
	char name[KEY_MOST + 1];

	if (!takes(r, '"') || !read_text(r))
		return broken(f, r, "a name in quotes is missing");
	key = (struct span){name, r->n < sizeof(name) ? r->n : sizeof(name)};
	memcpy(name, r->text, key.n);
	if (!takes(r, ':'))
		return broken(f, r, "a colon is missing");
	if (takes(r, '"')) {
		if (!read_text(r))
			return broken(f, r, "a text does not end, or has an escape that there is not");
		value = (struct span){r->text, r->n};
	} else if (!read_bare(r, &value)) {
		return broken(f, r, "a value is missing, or is no text and no number");
	}
	return !value.p || field_add(f, key, value);
}

bool fields_of_body(struct fields *f, struct span body)
{
	struct reader r = {.begin = body.p, .at = body.p, .end = body.p + body.n};

	skip_blanks(&r);
	if (r.at == r.end)
		return true;
	if (!takes(&r, '{'))
		return broken(f, &r, "it begins with {");
	if (!takes(&r, '}')) {
		do {
			if (!read_member(f, &r))
				return false;
		} while (takes(&r, ','));
		if (!takes(&r, '}'))
			return broken(f, &r, "a comma or } is missing");
	}
	skip_blanks(&r);
	return r.at == r.end || broken(f, &r, "something stands behind the object");
}
