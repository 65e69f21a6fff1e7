/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the daemon, for the log: a line about the daemon, and one for each figure of STATS that is not 0, except the buckets of histograms. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static void sample_log(void *context, const struct sample *s)
{
	char name[SAMPLE_NAME], value[SAMPLE_TEXT], labels[256] = "";
	size_t n = 0;

	(void)context;
	if (s->value == 0)
		return;
	sample_name(s, name);
	sample_text(s, value);
	for (unsigned i = 0; i < s->labels && n < sizeof(labels); i++)
		n += (size_t)snprintf(labels + n, sizeof(labels) - n, " %s=%s", s->label[i].name, s->label[i].value);
	log_event(LOG_NOTICE, "status", "metric=%s value=%s%s", name, value, labels);
}

void status_log(struct daemon *d)
{
	char text[sizeof(d->status)];

	service_status(d->service, text, sizeof(text));
	log_event(LOG_NOTICE, "status", "version=%s pid=%d up_s=%" PRId64 " store=%s now=\"%s\" connections=%u%s", REDLOCKD_VERSION, (int)getpid(),
	          instant_diff(clock_boottime(), d->started) / SEC, d->core_conf.store, text, net_sessions(d->net), d->stopping ? " stopping=yes" : "");
	service_tally(d->service, &(struct sampler){NULL, sample_log, false});
}
