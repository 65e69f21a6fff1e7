/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drain: the daemon grants nothing new, and stops when nobody holds anything. With --wait it stays until the daemon has stopped. For administrators.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/json.h"
#include "client/lib/display.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_END (-1) /* in_ms: as long as somebody holds */

static void drain_person(const struct redlock_line *answer)
{
	int64_t locks = redlock_line_number(answer, "locks", 0), ms = redlock_line_number(answer, "in_ms", NO_END);
	char age[AGE_BYTES];

	printf("the daemon grants nothing new; it stops when nobody holds anything");
	if (ms >= 0)
		printf(", or in %s", age_text(ms, age));
	printf(" (%" PRId64 " %s held)\n", locks, locks == 1 ? "lock is" : "locks are");
}

/* Whether a push says that the daemon stops now. */
static bool stops_now(struct redlock *c)
{
	const struct redlock_line *push;
	bool now = false;

	while ((push = redlock_next_push(c))) {
		struct redlock_bytes code = redlock_line_code(push);

		if (code.n == 5 && !memcmp(code.p, "DRAIN", 5))
			now = redlock_line_number(push, "in_ms", NO_END) == 0;
	}
	return now;
}

/* Until the daemon ends the connection. One that breaks before the daemon has said that it stops may have another cause. */
static int wait_for_end(struct redlock *c)
{
	bool now = false;
	int r = 0;

	while (!r) {
		struct pollfd fd = {.fd = redlock_fd(c), .events = redlock_events(c)};

		now |= stops_now(c);
		if (poll(&fd, 1, -1) >= 0)
			r = redlock_process(c);
		else if (errno != EINTR)
			r = -errno;
	}
	now |= stops_now(c);
	if (!now)
		complain("%s; the daemon has not said that it stops", redlock_errmsg(c));
	return now ? EXIT_SUCCESS : EX_UNAVAILABLE;
}

static int drain(struct redlock *c, const struct invocation *in)
{
	char line[48] = "DRAIN";
	int r = in->stay ? exit_of(c, redlock_request(c, "SUBSCRIBE", 0, NULL, NULL)) : 0;

	if (in->bounded)
		snprintf(line, sizeof(line), "DRAIN in=%" PRId64 "ms", in->in_ms);
	if (!r)
		r = exit_of(c, redlock_request(c, line, 0, NULL, NULL));
	if (r)
		return r;
	if (in->json)
		json_print_line(redlock_answer(c), false);
	else
		drain_person(redlock_answer(c));
	if (!output_flush())
		return EX_UNAVAILABLE;
	return in->stay ? wait_for_end(c) : EXIT_SUCCESS;
}

int drain_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	int r;

	if (!c)
		return EX_UNAVAILABLE;
	r = drain(c, in);
	redlock_close(c);
	return r;
}
