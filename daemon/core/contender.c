/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/contender.h"

#include <string.h>

const struct contender contender_none = {.state = CONTENDER_IDLE};

void contender_line_up(struct contender *k, struct claim *c)
{
	struct claim *before = TAILQ_LAST(&k->waiters, claims);

	while (before && claim_stands_before(c, before))
		before = TAILQ_PREV(before, claims, in_lock);
	if (before)
		TAILQ_INSERT_AFTER(&k->waiters, before, c, in_lock);
	else
		TAILQ_INSERT_HEAD(&k->waiters, c, in_lock);
}

void elsewhere_note(const struct core *core, struct elsewhere *elsewhere, const struct answer *a)
{
	struct span holder = a->found.n > 0 ? a->found : SPAN("");
	const char *dot = memchr(holder.p, '.', holder.n);
	const char *colon = memchr(holder.p, ':', holder.n);
	struct span own = span_of(core->daemon_id);

	elsewhere->foreign = holder.n == 0 && core->conf.shared;
	elsewhere->host[0] = '\0';
	if (dot && colon && dot < colon && !span_starts(holder, own)) {
		size_t n = (size_t)(colon - dot - 1);

		n = n < sizeof(elsewhere->host) ? n : sizeof(elsewhere->host) - 1;
		memcpy(elsewhere->host, dot + 1, n);
		elsewhere->host[n] = '\0';
	}
}
