/* SPDX-License-Identifier: BSD-2-Clause */
/* Rate limits: redlock_rate() of redlock.h. */
#include "client/lib/await.h"
#include "client/lib/display.h"

#include <string.h>

int redlock_rate(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, struct redlock_rate *ret_rate)
{
	return redlock_rate_wait(c, name, limit, per_ms, cost, 0, ret_rate);
}

int redlock_rate_wait(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, int64_t wait_ms, struct redlock_rate *ret_rate)
{
	const struct redlock_line *answer;
	struct redlock_bytes unmetered;
	struct draft *d = &c->draft;
	int r;

	draft_begin(d, "RATE", name);
	draft_number(d, "limit", limit);
	draft_ms(d, "per", per_ms);
	draft_number(d, "cost", cost);
	if (wait_ms < 0)
		draft_text(d, " wait=forever");
	else if (wait_ms > 0)
		draft_ms(d, "wait", wait_ms);
	r = await_draft(c, PENDING_ONCE, wait_ms, NULL);
	if (r != REDLOCK_OK && r != REDLOCK_BUSY && r != REDLOCK_TIMEOUT)
		return r;
	answer = redlock_answer(c);
	unmetered = redlock_line_find(answer, "unmetered");
	*ret_rate = (struct redlock_rate){
		.left = redlock_line_number(answer, "left", 0),
		.reset_ms = redlock_line_number(answer, "reset_ms", 0),
		.retry_ms = redlock_line_number(answer, "retry_ms", 0),
		.unmetered = unmetered.n == 3 && !memcmp(unmetered.p, "yes", 3),
	};
	return r;
}
