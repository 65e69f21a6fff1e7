/* SPDX-License-Identifier: BSD-2-Clause */
/* See shown.h. */
#include "daemon/store/shown.h"

#include "daemon/core/event/event.h"

#include <stdio.h>

#define SECRET_N 32
#define SINCE_N  12

static size_t run_of(struct span s, size_t from, bool (*in)(char c))
{
	size_t i = from;

	while (i < s.n && in(s.p[i]))
		i++;
	return i - from;
}

static bool is_part(char c)
{
	return c != ':';
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

struct span shown_public(struct span value)
{
	size_t id = run_of(value, 0, is_part);
	size_t ticket = id < value.n ? run_of(value, id + 1, is_part) : 0;
	size_t end = id + 1 + ticket;

	if (value.n > VALUE_MAX || !id || !ticket || end + 1 >= value.n || run_of(value, end + 1, is_hex) != value.n - end - 1)
		return SPAN("");
	return (struct span){value.p, value.n - end - 1 == SECRET_N ? end + 1 + SINCE_N : end};
}

#define SHOWN_BYTES 100 /* of a value that no redlockd wrote */

struct span shown_what(struct span value, char room[SHOWN_MAX])
{
	struct span what = shown_public(value);
	size_t shown = value.n < SHOWN_BYTES ? value.n : SHOWN_BYTES;
	int n;

	if (what.n > 0)
		return what;
	n = snprintf(room, SHOWN_MAX - SHOWN_BYTES, "#%zu:", value.n);
	if (shown > 0)
		memcpy(room + n, value.p, shown);
	return (struct span){room, (size_t)n + shown};
}
