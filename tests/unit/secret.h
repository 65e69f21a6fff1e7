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

#endif
