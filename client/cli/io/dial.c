/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "client/cli/io/dial.h"
#include "client/cli/io/invocation.h"
#include "client/cli/io/output.h"
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

void redial_pause(void)
{
	(void)poll(NULL, 0, PAUSE_US / 1000);
}

/* Whether it may work in a moment: there is no socket yet, nobody listens, too many wait, or the host does not answer. */
static bool may_come_back(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ETIMEDOUT || r == -EHOSTUNREACH || r == -ENETUNREACH || r == -EAGAIN;
}

/* At least a millisecond of --wait is left, because 0 would mean not to wait. */
struct redlock *dial_waiting(struct invocation *in, struct pollfd *ends)
{
	int64_t began = redlock_now_us(), until = in->wait_ms < 0 ? INT64_MAX : began + in->wait_ms * 1000, left_us;
	bool complained = false;
	struct redlock *c;
	int r;

	if (!in->wait_given)
		return dial(in->addr);
	for (;;) {
		r = redlock_open(in->addr, MAX(1, MIN((until - redlock_now_us()) / 1000, ANSWER_TIMEOUT_MS)), &c);
		if (!r && !redlock_set_timeout(c, ANSWER_TIMEOUT_MS))
			return c;
		left_us = until - redlock_now_us();
		if (!may_come_back(r) || left_us <= 0)
			break;
		if (!complained && isatty(STDERR_FILENO) && stderr_is_ready())
			complain("%s; trying again", redlock_errmsg(NULL));
		complained = true;
		if (poll(ends, ends ? 2 : 0, (int)((MIN(PAUSE_US, left_us) + 999) / 1000)) > 0)
			return NULL;
		if (in->wait_ms > 0)
			in->wait_ms = MAX(1, (until - redlock_now_us()) / 1000);
	}
	complain("%s%s", redlock_errmsg(NULL), absence_hint(r));
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

int hello(struct redlock *c, const char *label)
{
	return redlock_hello(c, &(struct redlock_session){.size = sizeof(struct redlock_session), .label = label});
}

int list_all(struct redlock *c, enum redlock_listing what, struct redlock_page *page, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	int r;

	do
		r = redlock_list(c, what, page, row, arg);
	while (!r && page->more > 0 && redlock_line_number(redlock_answer(c), "n", 0) > 0);
	return r;
}

const char *silence_hint(int outcome)
{
	bool silent = outcome == -ETIMEDOUT || outcome == -ECONNRESET || outcome == -EPIPE;

	return silent ? "; on its host, systemctl status redlockd may say why" : "";
}

int exit_of(const struct redlock *c, int outcome)
{
	static const struct {
		const char *code;
		int exit;
	} row[] = {{"ARG", EX_USAGE}, {"SYNTAX", EX_USAGE}, {"UNKNOWN", EX_USAGE}, {"TOOLONG", EX_USAGE}, {"LIMIT", EX_USAGE}, {"DENIED", EX_NOPERM},
		   {"NOTFOUND", EXIT_NO}};

	struct redlock_bytes text;
	struct span reason;

	if (!outcome)
		return EXIT_SUCCESS;
	complain("%s%s", redlock_errmsg(c), silence_hint(outcome));
	if (outcome == -EINVAL || outcome == -EMSGSIZE) /* nothing was sent */
		return EX_USAGE;
	if (outcome != REDLOCK_REFUSED)
		return EX_UNAVAILABLE;
	text = redlock_line_reason(redlock_answer(c));
	reason = (struct span){text.p, text.n};
	/* The daemon accepts no more connections. That is no mistake of the caller. */
	if (!strcmp(redlock_code(c), "LIMIT") && (span_starts(reason, SPAN("clients=")) || span_starts(reason, SPAN("descriptors="))))
		return EX_UNAVAILABLE;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (!strcmp(redlock_code(c), row[i].code))
			return row[i].exit;
	return EX_UNAVAILABLE;
}
