/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "client/dial.h"
#include "client/complaint.h"
#include "client/invocation.h"
#include "proto/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

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

/* What may be otherwise in a moment: there is no socket yet, nobody listens, too many wait, or the host does not answer. */
static bool may_come_back(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ETIMEDOUT || r == -EHOSTUNREACH || r == -ENETUNREACH || r == -EAGAIN;
}

struct redlock *dial_until(const char *addr, int64_t until_us, int64_t *ret_away_us)
{
	int64_t began = redlock_now_us();
	struct redlock *c = NULL;
	bool told = false;

	*ret_away_us = 0;
	for (;;) {
		int64_t left_ms = (until_us - redlock_now_us()) / 1000;
		int r = redlock_open(addr, MAX(1, MIN(left_ms, ANSWER_TIMEOUT_MS)), &c);

		if (!r)
			r = redlock_set_timeout(c, ANSWER_TIMEOUT_MS);
		if (!r)
			return c;
		if (!may_come_back(r) || redlock_now_us() + PAUSE_MS * 1000 >= until_us)
			break;
		if (!told && isatty(STDERR_FILENO) && stderr_is_ready())
			complain("%s; trying again", redlock_errmsg(NULL));
		told = true;
		redial_pause();
		*ret_away_us = redlock_now_us() - began;
	}
	complain("%s", redlock_errmsg(NULL));
	return NULL;
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
