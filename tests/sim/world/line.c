/* SPDX-License-Identifier: BSD-2-Clause */
/* Words and fields of a line, one by one. */
#include "tests/sim/world/line.h"

#include "tests/sim/plan/plan.h"

#include <string.h>

struct span line_field(struct span line, const char *field)
{
	size_t n = strlen(field);

	for (size_t i = 0; i + n + 1 < line.n; i++) {
		if (line.p[i] != ' ' || line.p[i + 1] != *field || memcmp(line.p + i + 1, field, n) || i + 1 + n >= line.n || line.p[i + 1 + n] != '=')
			continue;
		line.p += i + n + 2;
		line.n -= i + n + 2;
		for (n = 0; n < line.n && line.p[n] != ' '; n++)
			;
		return (struct span){line.p, n};
	}
	return (struct span){NULL, 0};
}

int64_t line_int(struct span line, const char *field)
{
	struct span text = line_field(line, field);
	bool minus = text.n > 0 && text.p[0] == '-';
	int64_t value = 0;

	if (text.n == 0)
		return INT64_MIN;
	for (size_t i = minus; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++)
		value = value * 10 + (text.p[i] - '0');
	return minus ? -value : value;
}

struct span line_word(struct span line, unsigned n)
{
	for (;;) {
		const char *blank = memchr(line.p, ' ', line.n);
		size_t length = blank ? (size_t)(blank - line.p) : line.n;

		if (n-- == 0)
			return (struct span){line.p, length};
		if (!blank)
			return (struct span){line.p, 0};
		line.p += length + 1;
		line.n -= length + 1;
	}
}

int64_t name_number(struct span name)
{
	return name.n == 2 && name.p[0] == 'k' && name.p[1] >= '0' && name.p[1] < '0' + NAMES_MAX ? name.p[1] - '0' : -1;
}

int64_t line_name(struct span line)
{
	struct span name = line_field(line, "name");

	return name.n ? name_number(name) : -1;
}

int64_t line_owner(struct span line)
{
	int64_t owner = line_int(line, "owner");

	return owner < 0 ? 0 : owner;
}

bool line_tag(struct span line, unsigned *ret_number)
{
	unsigned number = 0;

	if (line.n <= 2 || line.p[0] != '@')
		return false;
	for (size_t i = 2; i < line.n && line.p[i] >= '0' && line.p[i] <= '9'; i++)
		number = number * 10 + (unsigned)(line.p[i] - '0');
	*ret_number = number;
	return true;
}
