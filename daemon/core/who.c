/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/who.h"

#include <inttypes.h>
#include <stdio.h>

struct span session_address(const struct session *s)
{
	return s->at_unix ? SPAN(UNIX_ADDRESS) : span_of(s->address ? s->address : "");
}

size_t session_who(const struct session *s, char *out)
{
	const char *label = s->label ? s->label : "";
	const char *blank = s->label ? " " : "";
	struct span address = session_address(s);
	int n;

	if (s->is_unix)
		n = snprintf(out, WHO_MAX, "%s%spid=%" PRId64 " uid=%" PRId64, label, blank, s->pid, s->uid);
	else if (address.n == 0)
		n = snprintf(out, WHO_MAX, "%s%ssession=%" PRIu64, label, blank, s->serial);
	else
		n = snprintf(out, WHO_MAX, "%s%s%.*s", label, blank, (int)address.n, address.p);
	return n < 0 ? 0 : (size_t)n < WHO_MAX ? (size_t)n : WHO_MAX - 1;
}

void session_ended(struct session_table *t, const struct session *s, const char *reason)
{
	char who[WHO_MAX];

	if (core_may_log(t->core, BURST_HANGUP))
		core_log(t->core, LOG_INFO, "hang-up", "peer=%s session=%" PRIu64 " reason=%s held=%u waiting=%u",
		         core_quoted(t->core, (struct span){who, session_who(s, who)}), s->serial, reason, s->held, s->waiting);
}
