/* SPDX-License-Identifier: BSD-2-Clause */
/* See json.h. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *skip(char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Appends a character as UTF-8. */
static char *put(char *to, unsigned c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

static unsigned hex(const char *at)
{
	char digits[5] = {0};

	memcpy(digits, at, strnlen(at, 4));
	return (unsigned)strtoul(digits, NULL, 16);
}

/* Reads a string in its own place: what it becomes is no longer than its text. NULL: it is none. */
static char *string(char *at, char **ret_text, size_t *ret_n)
{
	static const char from[] = "\"\\/bfnrt", becomes[] = "\"\\/\b\f\n\r\t";
	char *to = at + 1, *found;
	unsigned c;

	if (*at != '"')
		return NULL;
	*ret_text = to;
	for (at++; *at && *at != '"'; at++) {
		if (*at != '\\') {
			*to++ = *at;
		} else if (*++at == 'u') {
			c = hex(at + 1);
			if (c >= 0xd800 && c < 0xdc00 && at[5] == '\\')
				c = 0x10000 + ((c & 0x3ff) << 10) + (hex(at + 7) & 0x3ff), at += 6;
			to = put(to, c);
			at += 4;
		} else {
			found = *at ? strchr(from, *at) : NULL;
			if (!found)
				return NULL;
			*to++ = becomes[found - from];
		}
	}
	if (!*at)
		return NULL;
	*to = '\0';
	*ret_n = (size_t)(to - *ret_text);
	return at + 1;
}

static char *list(char *at, struct json_field *f)
{
	size_t n;

	for (at = skip(at + 1); at && *at != ']'; at = at ? skip(at + (*at == ',')) : NULL) {
		at = f->n < JSON_MOST ? string(skip(at), &f->text[f->n++], &n) : NULL;
		at = at ? skip(at) : NULL;
	}
	return at ? at + 1 : NULL;
}

/* A value; of null the key is NULL. */
static char *value(char *at, struct json_field *f)
{
	char *end;

	if (*at == '"')
		return string(at, &f->text[0], &f->n);
	if (*at == '[')
		return list(at, f);
	if (!strncmp(at, "null", 4))
		f->key = NULL;
	f->number = !strncmp(at, "true", 4);
	if (!f->key || f->number > 0 || !strncmp(at, "false", 5))
		return at + 4 + (*at == 'f');
	f->number = strtod(at, &end);
	return end > at ? end : NULL;
}

bool json_read(char *line, struct json *ret_object)
{
	char *at = skip(line);
	struct json_field *f;
	size_t n;

	ret_object->n = 0;
	if (*at != '{')
		return false;
	for (at = skip(at + 1); at && *at && *at != '}'; at = at ? skip(at + (*at == ',')) : NULL) {
		if (ret_object->n == sizeof(ret_object->field) / sizeof(ret_object->field[0]))
			return false;
		f = &ret_object->field[ret_object->n++];
		*f = (struct json_field){.n = 0};
		at = string(at, &f->key, &n);
		at = at ? skip(at) : NULL;
		at = at && *at == ':' ? value(skip(at + 1), f) : NULL;
		at = at ? skip(at) : NULL;
	}
	return at && *at == '}';
}

const struct json_field *json_find(const struct json *object, const char *key)
{
	for (size_t i = 0; i < object->n; i++)
		if (object->field[i].key && !strcmp(object->field[i].key, key))
			return &object->field[i];
	return NULL;
}

const char *json_text(const struct json *object, const char *key)
{
	const struct json_field *f = json_find(object, key);

	return f ? f->text[0] : NULL;
}

double json_number(const struct json *object, const char *key, double otherwise)
{
	const struct json_field *f = json_find(object, key);

	return f ? f->number : otherwise;
}

void json_say(const char *text, size_t n)
{
	putchar('"');
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)text[i] < ' ')
			printf("\\u%04x", text[i]);
		else
			printf(text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
	}
	putchar('"');
}
