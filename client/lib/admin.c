/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions for administrators (redlock.h). None is repeated: done twice, it could hit somebody else. */
#include "client/lib/await.h"

/* Tells a number of the answer to those who want to know. */
static int admin_ask(struct redlock *c, const char *field, int64_t *ret_number)
{
	int r = await_draft(c, PENDING_ONCE, ONCE_MS, NULL);

	if (!r && ret_number)
		*ret_number = redlock_line_number(redlock_answer(c), field, 0);
	return r;
}

int redlock_break(struct redlock *c, const char *name, int64_t *ret_free_in_ms)
{
	struct draft *d = &c->draft;

	draft_begin(d, "BREAK", name);
	return admin_ask(c, "free_in_ms", ret_free_in_ms);
}

int redlock_kill(struct redlock *c, int64_t session, int64_t *ret_held)
{
	struct draft *d = &c->draft;

	draft_verb(d, "KILL");
	draft_number(d, "session", session);
	return admin_ask(c, "n", ret_held);
}

int redlock_drain(struct redlock *c, int64_t in_ms, int64_t *ret_held)
{
	struct draft *d = &c->draft;

	draft_verb(d, "DRAIN");
	if (in_ms >= 0)
		draft_ms(d, "in", in_ms);
	return admin_ask(c, "locks", ret_held);
}
