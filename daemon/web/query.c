/* SPDX-License-Identifier: BSD-2-Clause */
/* See query.h. Not by evhttp, whose values end at their first NUL. */
#include "daemon/web/query.h"

#include <stdio.h>
#include <string.h>

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

static enum query_outcome query_decode(const char *from, size_t n, char *ret_text, size_t size, size_t *ret_n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++, out++) {
		if (out == size)
			return QUERY_BAD;
		ret_text[out] = from[i] == '+' ? ' ' : from[i];
		if (from[i] != '%')
			continue;
		if (n - i < 3 || digit(from[i + 1]) < 0 || digit(from[i + 2]) < 0)
			return QUERY_BAD;
		ret_text[out] = (char)(digit(from[i + 1]) << 4 | digit(from[i + 2]));
		i += 2;
	}
	*ret_n = out;
	return QUERY_FOUND;
}

enum query_outcome query_get(const char *query, const char *field, char *ret_text, size_t size, size_t *ret_n)
{
	size_t name = strlen(field), n;

	for (; query && *query; query += n + (query[n] == '&')) {
		n = strcspn(query, "&");
		if (n > name && query[name] == '=' && strncmp(query, field, name) == 0)
			return query_decode(query + name + 1, n - name - 1, ret_text, size, ret_n);
	}
	return QUERY_ABSENT;
}

bool query_pass(const char *query, const char *field, char *line, size_t size)
{
	char text[NAME_MAX_BYTES], quoted[NAME_MAX_BYTES * 4 + 3];
	size_t n, length, used = strlen(line);

	switch (query_get(query, field, text, sizeof(text), &n)) {
	case QUERY_ABSENT:
		return true;
	case QUERY_BAD:
		return false;
	case QUERY_FOUND:
		break;
	}
	if (n == 0)
		return true;
	length = quote((struct span){text, n}, quoted, sizeof(quoted));
	if (!length)
		return false;
	n = (size_t)snprintf(line + used, size - used, " %s=%.*s", field, (int)length, quoted);
	return n < size - used;
}
