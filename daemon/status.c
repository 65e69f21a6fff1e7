/* SPDX-License-Identifier: BSD-2-Clause */
/* How things are, for the log: a line about the daemon, and one for each figure of STATS that is not 0. */
#include "daemon/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

#include <inttypes.h>
#include <unistd.h>

void status_log(struct daemon *d)
{
	const struct metrics *m = service_metrics(d->service);
	char text[sizeof(d->status)];

	service_status(d->service, text, sizeof(text));
	log_event(LOG_NOTICE, "status", "version=%s pid=%d up_s=%" PRId64 " store=%s now=\"%s\" connections=%u%s", REDLOCKD_VERSION, (int)getpid(),
	          instant_diff(clock_boottime(), d->started) / SEC, d->core_conf.store, text, net_sessions(d->net), d->stopping ? " stopping=yes" : "");
	for (unsigned i = 0; i < METRIC_N; i++)
		if (m->value[i] != 0)
			log_event(LOG_NOTICE, "status", "metric=%s value=%" PRId64, metric_table[i].name, m->value[i]);
}
