/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "client/cli/io/dial.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/invocation.h"
#include "proto/span.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define PAUSE_US 500000

const char *absence_hint(int outcome)
{
	return outcome == -ENOENT || outcome == -ECONNREFUSED ? " See systemctl status redlockd on its host" : "";
}

struct redlock *dial(const char *addr)
{
	struct redlock *c;
	int r = redlock_open(addr, ANSWER_TIMEOUT_MS, &c);

	if (!r)
		return c;
	complain("%s%s", redlock_errmsg(NULL), absence_hint(r));
	return NULL;
}

/* True: something came at one of the two descriptors. ends: NULL: there are none. */
static bool pause_for(int64_t us, struct pollfd *ends)
{
	return poll(ends, ends ? 2 : 0, (int)((us + 999) / 1000)) > 0;
}

void redial_pause(void)
{
	(void)pause_for(PAUSE_US, NULL);
}

/* What may be otherwise in a moment: there is no socket yet, nobody listens, too many wait, or the host does not answer. */
static bool may_come_back(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ETIMEDOUT || r == -EHOSTUNREACH || r == -ENETUNREACH || r == -EAGAIN;
}

/* Tries for the last time at that moment. *ret_away_us: for how long the daemon was away. */
static struct redlock *dial_until(const char *addr, int64_t until_us, struct pollfd *ends, int64_t *ret_away_us)
{
	int64_t began = redlock_now_us();
	struct redlock *c = NULL;
	bool told = false;
	int r;

	for (;;) {
		int64_t left_us = until_us - redlock_now_us();

		r = redlock_open(addr, MAX(1, MIN(left_us / 1000, ANSWER_TIMEOUT_MS)), &c);

		if (!r)
			r = redlock_set_timeout(c, ANSWER_TIMEOUT_MS);
		if (!r)
			return c;
		left_us = until_us - redlock_now_us();
		if (!may_come_back(r) || left_us <= 0)
			break;
		if (!told && isatty(STDERR_FILENO) && stderr_is_ready())
			complain("%s; trying again", redlock_errmsg(NULL));
		told = true;
		if (pause_for(MIN(PAUSE_US, left_us), ends))
			return NULL;
		*ret_away_us = redlock_now_us() - began;
	}
	complain("%s%s", redlock_errmsg(NULL), absence_hint(r));
	return NULL;
}

/* A millisecond of --wait is left at least: 0 would not wait. */
struct redlock *dial_waiting(struct invocation *in, struct pollfd *ends)
{
	int64_t until = in->wait_ms < 0 ? INT64_MAX : redlock_now_us() + in->wait_ms * 1000, away_us = 0;
	struct redlock *c = in->wait_given ? dial_until(in->addr, until, ends, &away_us) : dial(in->addr);

	if (away_us > 0 && in->wait_ms > 0)
		in->wait_ms = MAX(1, in->wait_ms - away_us / 1000);
	return c;
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

int hello(struct redlock *c, const char *label)
{
	return redlock_hello(c, &(struct redlock_session){.size = sizeof(struct redlock_session), .label = label});
}

/* The daemon takes no further connection. That is no mistake of the caller. */
static bool daemon_is_full(const struct redlock *c)
{
	struct redlock_bytes text = redlock_line_reason(redlock_answer(c));
	struct span reason = {text.p, text.n};

	return !strcmp(redlock_code(c), "LIMIT") &&
	       (span_starts(reason, SPAN("clients=")) || span_starts(reason, SPAN("descriptors=")));
}

const char *silence_hint(int outcome)
{
	bool silent = outcome == -ETIMEDOUT || outcome == -ECONNRESET || outcome == -EPIPE;

	return silent ? "; on its host, systemctl status redlockd may say why" : "";
}

int exit_of(const struct redlock *c, int outcome)
{
	static const char *const usage[] = {"ARG", "SYNTAX", "UNKNOWN", "TOOLONG", "LIMIT"};
	size_t i;

	if (!outcome)
		return EXIT_SUCCESS;
	complain("%s%s", redlock_errmsg(c), silence_hint(outcome));
	if (outcome == -EINVAL || outcome == -EMSGSIZE) /* nothing was sent */
		return EX_USAGE;
	if (outcome == REDLOCK_REFUSED && daemon_is_full(c))
		return EX_UNAVAILABLE;
	for (i = 0; outcome == REDLOCK_REFUSED && i < sizeof(usage) / sizeof(usage[0]); i++)
		if (!strcmp(redlock_code(c), usage[i]))
			return EX_USAGE;
	if (outcome == REDLOCK_REFUSED && !strcmp(redlock_code(c), "DENIED"))
		return EX_NOPERM;
	return outcome == REDLOCK_REFUSED && !strcmp(redlock_code(c), "NOTFOUND") ? EXIT_NO : EX_UNAVAILABLE;
}
