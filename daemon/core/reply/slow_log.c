/* SPDX-License-Identifier: BSD-2-Clause */
/* See slow_log.h. */
#include "daemon/core/reply/slow_log.h"

#include <inttypes.h>
#include <stdio.h>

/* One line of the log. names: how many were asked for at once; 0: this one. trace: "": none. */
struct slow {
	const char *kind, *of, *field, *outcome;
	unsigned names;
	struct span trace;
};

static void slow_log(struct request_context *x, const struct slow *l, const struct session *s, struct span name, int64_t us)
{
	char who[WHO_MAX], names[24] = "";

	if (!core_may_log(x->core, BURST_SLOW))
		return;
	if (l->names > 0)
		snprintf(names, sizeof(names), " names=%u", l->names);
	core_log(x->core, LOG_NOTICE, "slow", "kind=%s %s=%s peer=%s session=%" PRIu64 " %s=%" PRId64 "%s outcome=%s%s%.*s", l->kind, l->of,
	         core_quoted(x->core, name), core_quoted(x->core, (struct span){who, session_who(s, who)}), s->serial, l->field, us / MSEC, names,
	         l->outcome, l->trace.n > 0 ? " trace=" : "", (int)l->trace.n, l->trace.p);
}

static void slow_wait_log(struct request_context *x, const struct slow *l, const struct session *s, struct span name, struct instant since)
{
	int64_t us = instant_diff(x->core->now, since);

	if (x->core->conf.slow_wait_us > 0 && us >= x->core->conf.slow_wait_us)
		slow_log(x, l, s, name, us);
}

void slow_wait(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome)
{
	slow_wait_log(x, &(struct slow){"wait", "name", "waited_ms", outcome, 0, trace}, s, name, since);
}

void slow_wait_of_group(struct request_context *x, const struct session *s, struct span name, unsigned names, struct span trace, struct instant since)
{
	slow_wait_log(x, &(struct slow){"wait", "name", "waited_ms", "granted", names, trace}, s, name, since);
}

void slow_wait_of_take(struct request_context *x, const struct session *s, struct span queue, struct instant since)
{
	slow_wait_log(x, &(struct slow){"wait", "queue", "waited_ms", "granted", 0, SPAN("")}, s, queue, since);
}

void slow_hold(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome)
{
	int64_t us = instant_diff(x->core->now, since);

	if (x->core->conf.slow_hold_us > 0 && us >= x->core->conf.slow_hold_us)
		slow_log(x, &(struct slow){"hold", "name", "held_ms", outcome, 0, trace}, s, name, us);
}
