/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/contender.h"

#include <string.h>

const struct contender contender_none = {.state = CONTENDER_IDLE};

void contender_reorder(struct contender *k, struct claim *c)
{
	struct claim *later;

	TAILQ_REMOVE(&k->waiters, c, in_lock);
	TAILQ_FOREACH(later, &k->waiters, in_lock) {
		if (instant_before(c->asking->asked_at, later->asking->asked_at)) {
			TAILQ_INSERT_BEFORE(later, c, in_lock);
			return;
		}
	}
	TAILQ_INSERT_TAIL(&k->waiters, c, in_lock);
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
