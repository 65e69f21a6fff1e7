/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/clients/loops/scenario.h"

#include "client/loop/poll.h"

static struct redlock *c;
static bool ended;

void loop_begin(struct redlock *connection)
{
	c = connection;
}

void loop_update(void)
{
}

void loop_run(void)
{
	int64_t due = redlock_now_us();
	struct pollfd row;

	while (!ended) {
		int most = due > redlock_now_us() ? (int)(due - redlock_now_us()) / 1000 + 1 : 0, timeout = redlock_poll_before(c, &row, most);

		(void)!poll(&row, 1, timeout);
		scenario_ready(NULL, redlock_poll_after(c));
		if (redlock_now_us() < due)
			continue;
		due = redlock_now_us() + TICK_MS * 1000;
		scenario_tick();
	}
}

void loop_end(void)
{
	ended = true;
}
