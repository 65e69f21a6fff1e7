/* SPDX-License-Identifier: BSD-2-Clause */
/* See slow.h. */
#include "daemon/core/slow.h"

#include <inttypes.h>

static void slow_log(struct commander *x, const char *kind, const char *field, const struct session *s, struct span name, int64_t us, const char *outcome)
{
	char who[WHO_MAX];

	if (core_may_log(x->core, BURST_SLOW))
		core_log(x->core, LOG_NOTICE, "slow", "kind=%s name=%s peer=%s session=%" PRIu64 " %s=%" PRId64 " outcome=%s", kind,
		         core_quoted(x->core, name), core_quoted(x->core, (struct span){who, session_who(s, who)}), s->serial, field, us / MSEC, outcome);
}

void slow_wait(struct commander *x, const struct session *s, struct span name, struct instant since, const char *outcome)
{
	int64_t us = instant_diff(x->core->now, since);

	if (x->core->conf.slow_wait_us > 0 && us >= x->core->conf.slow_wait_us)
		slow_log(x, "wait", "waited_ms", s, name, us, outcome);
}

void slow_hold(struct commander *x, const struct session *s, struct span name, struct instant since, const char *outcome)
{
	int64_t us = instant_diff(x->core->now, since);

	if (x->core->conf.slow_hold_us > 0 && us >= x->core->conf.slow_hold_us)
		slow_log(x, "hold", "held_ms", s, name, us, outcome);
}
