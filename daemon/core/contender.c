/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/contender.h"

#include <string.h>

const struct contender contender_none = {.state = CONTENDER_IDLE};

void elsewhere_note(const struct core *core, struct elsewhere *elsewhere, const struct answer *a)
{
	struct span holder = a->found.n > 0 ? a->found : SPAN("");
	const char *dot = memchr(holder.p, '.', holder.n);
	const char *colon = memchr(holder.p, ':', holder.n);
	struct span own = span_of(core->daemon_id);

	elsewhere->foreign = holder.n == 0 && core->conf.shared;
	elsewhere->host[0] = '\0';
	if (span_starts(holder, SPAN("!")))
		return; /* broken: nobody holds it, and nobody gets it yet */
	if (dot && colon && dot < colon && !span_starts(holder, own)) {
		size_t n = (size_t)(colon - dot - 1);

		n = n < sizeof(elsewhere->host) ? n : sizeof(elsewhere->host) - 1;
		memcpy(elsewhere->host, dot + 1, n);
		elsewhere->host[n] = '\0';
	}
}
