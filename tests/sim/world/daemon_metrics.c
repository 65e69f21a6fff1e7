/* SPDX-License-Identifier: BSD-2-Clause */
/* What the metrics of the daemons say of a world: does it reach what it was drawn for? */
#include "tests/sim/world/world.h"

void daemon_metrics_step(struct sim_daemon *d)
{
	const int64_t *value = service_metrics(d->service)->value;
	struct world *w = d->world;

	w->waiting += value[METRIC_WAITERS] - d->waiting;
	if (value[METRIC_QUEUED] > d->admission_waits)
		d->admission_waited_at = w->now;
	w->tally.admission_waits += value[METRIC_QUEUED] - d->admission_waits;
	d->waiting = value[METRIC_WAITERS];
	d->admission_waits = value[METRIC_QUEUED];
	if (w->waiting > w->tally.most_waited)
		w->tally.most_waited = w->waiting;
	if (value[METRIC_NAMES] > w->tally.most_names)
		w->tally.most_names = value[METRIC_NAMES];
}

void daemon_metrics_died(struct sim_daemon *d)
{
	d->world->waiting -= d->waiting;
	d->waiting = d->admission_waits = 0;
	d->admission_waited_at = 0;
}
