/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of JSON as tests/clients has them: an object of strings, numbers, booleans and lists of strings. */
#ifndef CLIENTS_JSON_H
#define CLIENTS_JSON_H

#include <stdbool.h>
#include <stddef.h>

#define JSON_MOST 8 /* texts of a list */

struct json_field {
	char *key;
	char *text[JSON_MOST]; /* of a string: the first; NULL where it is none */
	size_t n;              /* of the list; of a string the bytes of the first, which may hold a NUL */
	double number;         /* of true: 1 */
};

struct json {
	struct json_field field[16];
	size_t n;
};

/* Reads a line, whose bytes become those of the texts. False: it is no such line. */
bool json_read(char *line, struct json *ret_object);
/* NULL: there is none, or it is null. */
const struct json_field *json_find(const struct json *object, const char *key);
const char *json_text(const struct json *object, const char *key); /* likewise */
double json_number(const struct json *object, const char *key, double otherwise);
/* Writes a text as a string. */
void json_say(const char *text, size_t n);

#endif
