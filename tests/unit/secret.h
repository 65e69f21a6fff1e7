/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of the stage that can be resumed, and by what. */
#ifndef UNIT_SECRET_H
#define UNIT_SECRET_H

#include "tests/unit/stage.h"

#include <stdio.h>

struct secret {
	int64_t serial;
	char text[33];
};

/* HELLO 1 with these fields. */
static inline struct secret says_hello(unsigned k, const char *fields)
{
	struct secret s = {0};
	const char *line;

	says(k, "HELLO 1 %s", fields);
	line = hears(k, "OK proto=1 *");
	s.serial = number_in(line, "session");
	if (sscanf(strstr(line, "secret="), "secret=%32s", s.text) != 1)
		s.text[0] = '\0';
	return s;
}

static inline void resumes(unsigned k, const struct secret *s)
{
	says(k, "RESUME %lld %s", (long long)s->serial, s->text);
}

/* 1 holds a; 2, with grace, waits; then 3 waits. What 2 resumes by. */
static inline struct secret waiting_with_grace(const char *grace)
{
	struct secret s;

	stage_begin(3);
	passes(2 * SEC);
	says(1, "LOCK a");
	hears(1, "OK *");
	s = says_hello(2, grace);
	says(2, "LOCK a wait=1m");
	says(3, "LOCK a wait=2m");
	return s;
}

#endif
