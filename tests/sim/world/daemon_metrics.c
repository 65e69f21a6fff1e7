/* SPDX-License-Identifier: BSD-2-Clause */
/* What the metrics of the daemons say of a world: does it reach what it was drawn for? */
#include "tests/sim/world/world.h"

void figures_step(struct sim_daemon *d)
{
	const int64_t *value = service_metrics(d->service)->value;
	struct world *w = d->world;

	w->waiting += value[METRIC_WAITERS] - d->waiting;
	if (value[METRIC_PACED] > d->paced)
		d->paced_at = w->now;
	w->tally.paced += value[METRIC_PACED] - d->paced;
	d->waiting = value[METRIC_WAITERS];
	d->paced = value[METRIC_PACED];
	if (w->waiting > w->tally.most_waited)
		w->tally.most_waited = w->waiting;
	if (value[METRIC_NAMES] > w->tally.most_names)
		w->tally.most_names = value[METRIC_NAMES];
}

void figures_died(struct sim_daemon *d)
{
	d->world->waiting -= d->waiting;
	d->waiting = d->paced = 0;
	d->paced_at = 0;
}
