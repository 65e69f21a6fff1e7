/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "client/dial.h"
#include "client/complaint.h"
#include "client/invocation.h"
#include "proto/span.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE_MS 500

struct redlock *dial(const char *addr)
{
	struct redlock *c;

	if (!redlock_open(addr, ANSWER_TIMEOUT_MS, &c))
		return c;
	complain("%s", redlock_errmsg(NULL));
	return NULL;
}

void redial_pause(void)
{
	const struct timespec pause = {0, PAUSE_MS * 1000000L};

	nanosleep(&pause, NULL);
}

struct redlock *redial(const char *addr)
{
	struct redlock *c = dial(addr);

	while (!c) {
		redial_pause();
		if (redlock_open(addr, ANSWER_TIMEOUT_MS, &c))
			c = NULL;
	}
	return c;
}

/* The daemon takes no further connection. That is no mistake of the caller. */
static bool daemon_is_full(const struct redlock *c)
{
	struct redlock_bytes text = redlock_line_reason(redlock_answer(c));
	struct span reason = {text.p, text.n};

	return !strcmp(redlock_code(c), "LIMIT") &&
	       (span_starts(reason, SPAN("clients=")) || span_starts(reason, SPAN("descriptors=")));
}

int exit_of(const struct redlock *c, int outcome)
{
	static const char *const usage[] = {"ARG", "SYNTAX", "UNKNOWN", "TOOLONG", "LIMIT"};
	size_t i;

	if (!outcome)
		return EXIT_SUCCESS;
	complain("%s", redlock_errmsg(c));
	if (outcome == REDLOCK_REFUSED && daemon_is_full(c))
		return EX_UNAVAILABLE;
	for (i = 0; outcome == REDLOCK_REFUSED && i < sizeof(usage) / sizeof(usage[0]); i++)
		if (!strcmp(redlock_code(c), usage[i]))
			return EX_USAGE;
	if (outcome == REDLOCK_REFUSED && !strcmp(redlock_code(c), "DENIED"))
		return EX_NOPERM;
	return outcome == REDLOCK_REFUSED && !strcmp(redlock_code(c), "NOTFOUND") ? EXIT_NO : EX_UNAVAILABLE;
}
